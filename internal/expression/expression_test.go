// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCompile(t *testing.T) {
	tests := []struct {
		name  string
		scope Scope
		src   string
		kind  Kind
		want  string
	}{
		{"text", Call, "'pong'", String, ""},
		{"dyn passes", Call, "args.city", String, ""},
		{"query with a default", Call, "has(args.days) ? args.days : 3", Scalar, ""},
		{"optional", Call, "args.?days.orValue(3)", Scalar, ""},
		{"structured", Response, `{"city": args.city, "highs": response.body.daily.map(d, d.tmax)}`, Any, ""},
		{"filter", Filter, "tool.metadata.category != 'internal'", Bool, ""},
		{"list of scalars", Call, "['a', 'b']", ScalarOrList, ""},
		{"bytes", Call, "base64.decode('eA==')", StringOrBytes, ""},
		{"variable named as a known one", Call, "[1].map(principal, principal)", Any, ""},
		{"empty", Call, "  ", Any, "the expression is empty"},
		{"syntax", Call, "args.", Any, "1:6: Syntax error: no viable alternative at input '.'"},
		{"unknown variable", Call, "response.body", Any, "1:1: undeclared reference to 'response'"},
		{"second line", Call, "args.a ||\n foo", Bool, "2:2: undeclared reference to 'foo'"},
		{"wrong kind", Call, "1", String, "the expression gives int, wanted is a string"},
		{"wrong kind in a list", Call, "[{'a': 1}]", ScalarOrList, "the expression gives list(map(string, int)), wanted is a string, number, boolean or a list of them"},
		{"bool wanted", Filter, "'x'", Bool, "the expression gives string, wanted is a boolean"},
		{"misspelt field", Response, "response.boddy", Any, `1:9: response has no field "boddy", it has body, headers, status`},
		{"too long", Call, "'" + strings.Repeat("x", MaxSource) + "'", Any, "the expression has 16386 bytes, at most 16384 are allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(tt.scope, tt.src, tt.kind)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCompileErrorsAreBounded(t *testing.T) {
	for _, src := range []string{
		strings.Repeat("(", 2000), strings.Repeat("a+", 500) + "a", "'" + strings.Repeat("é", 600) + "' + 1", "\x00\xff",
		strings.Repeat("[", 120) + strings.Repeat("]", 120),
	} {
		_, err := Compile(Call, src, Bool)
		if err == nil || len(err.Error()) > MaxError || strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("%.20q: got %v", src, err)
		}
		if _, again := Compile(Call, src, Bool); again.Error() != err.Error() {
			t.Errorf("%.20q: text differs: %v, then %v", src, err, again)
		}
	}
}

func TestEval(t *testing.T) {
	args := map[string]any{"city": "Bern", "days": int64(3), "ratio": 1.5, "tags": []any{"a", "b"}, "deep": map[string]any{"x": nil}}
	principal := Principal{Kind: "JWT", Subject: "ada", Scopes: []string{"read"}, Claims: map[string]any{"org": map[string]any{"name": "x"}}}
	vars := map[string]any{
		VarArgs: args, VarPrincipal: principal.Var(),
		VarResponse: map[string]any{"status": int64(200), "headers": map[string]string{"etag": "e"}, "body": map[string]any{"daily": []any{map[string]any{"tmax": int64(1)}, map[string]any{"tmax": 2.5}}}},
	}
	tests := []struct {
		src  string
		kind Kind
		want any
		err  string
	}{
		{src: "'pong'", kind: String, want: "pong"},
		{src: "args.city + '!'", kind: String, want: "Bern!"},
		{src: "args.days + 1", kind: Scalar, want: int64(4)},
		{src: "args.ratio * 2.0", kind: Scalar, want: 3.0},
		{src: "args", want: args},
		{src: `{"city": args.city, "highs": response.body.daily.map(d, d.tmax)}`, want: map[string]any{"city": "Bern", "highs": []any{int64(1), 2.5}}},
		{src: "response.headers.etag", kind: String, want: "e"},
		{src: "b'ab'", kind: StringOrBytes, want: []byte("ab")},
		{src: "args.?absent", kind: Any, want: nil},
		{src: "args.?absent.orValue('d')", kind: String, want: "d"},
		{src: "timestamp('2026-01-02T03:04:05Z')", want: "2026-01-02T03:04:05Z"},
		{src: "duration('90s')", want: "90s"},
		{src: "{1: 'a'}", want: map[string]any{"1": "a"}},
		{src: "principal.kind", kind: String, want: "JWT"},
		{src: "principal.claims.groups == null", kind: Bool, want: true},
		{src: "'admins' in principal.claims.groups", kind: Bool, want: false},
		{src: "'read' in principal.scopes", kind: Bool, want: true},
		{src: "'a' in null", kind: Bool, want: false},
		{src: "has(principal.claims.groups)", kind: Bool, want: false},
		{src: "has(principal.claims.org)", kind: Bool, want: true},
		{src: "principal.claims.org.name + string(principal.claims.org.absent == null)", kind: String, want: "xtrue"},
		{src: "'org' in principal.claims", kind: Bool, want: true},
		{src: "principal.claims", want: map[string]any{"org": map[string]any{"name": "x"}}},
		{src: "principal.claims.exists(k, k == 'org')", kind: Bool, want: true},
		{src: "args.absent", err: "no such key: absent (a key that may be absent is guarded by has())"},
		{src: "args.days", kind: String, err: "the expression gave a number, wanted is a string"},
		{src: "1.0 / 0.0", err: "the result holds a number that JSON cannot write"},
		{src: "type(1)", err: "the result holds a value of type type, which JSON has not"},
		{src: doubling(40), err: "the result is too large"},
		{src: "lists.range(args.days * 1000000000)", err: "exceeds maximum"},
		{src: "1 / 0", err: "division by zero"},
		{src: "args.city + 1", err: "no such overload"},
	}
	for _, tt := range tests {
		t.Run(tt.src, func(t *testing.T) {
			program, err := Compile(Response, tt.src, tt.kind)
			if err != nil {
				t.Fatal(err)
			}
			got, err := program.Eval(context.Background(), vars)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, %v, want error %q", got, err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// doubling gives a list that is added to itself n times.
func doubling(n int) string {
	src := "x"
	for range n {
		src = "cel.bind(x, x + x, " + src + ")"
	}
	return "cel.bind(x, [1], " + src + ")"
}

func TestCostIsLimited(t *testing.T) {
	vars := map[string]any{VarArgs: map[string]any{"s": strings.Repeat("x", 1<<20), "re": "(x+x+)+y", "n": int64(1e9)}, VarPrincipal: Anonymous().Var()}
	for _, src := range []string{
		"lists.range(900000).map(i, i).size()",
		"lists.range(5000).map(a, lists.range(5000).map(b, a * b)).size()",
		"lists.range(1000).map(i, args.s + args.s).size()",
		"lists.range(1000).map(i, args.s.replace('x', 'xxxxxxxxxx')).size()",
		"lists.range(1000).map(i, args.s.matches(args.re)).size()",
		"lists.range(1000).map(i, '%s%s%s'.format([args.s, args.s, args.s])).size()",
		"lists.range(1000).map(i, args.s.split('')).size()",
		"lists.range(1000).map(i, base64.encode(bytes(args.s))).size()",
	} {
		program, err := Compile(Call, src, Any)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if _, err := program.Eval(context.Background(), vars); err == nil || !strings.Contains(err.Error(), "too expensive") {
			t.Errorf("%s: got %v", src, err)
		}
	}
}

// TestSlowCallsAreRefused: what one call would do for minutes is refused.
func TestSlowCallsAreRefused(t *testing.T) {
	list := make([]any, 200_000)
	for i := range list {
		list[i] = int64(i)
	}
	as := strings.Repeat("a", 5<<20)
	vars := map[string]any{VarArgs: map[string]any{"l": list, "s": as, "t": as[:1<<20] + "b"}, VarPrincipal: Anonymous().Var()}
	for _, src := range []string{
		"args.l.distinct()", "sets.contains(args.l, args.l)", "sets.equivalent(args.l, args.l)", "sets.intersects(args.l, args.l)",
		"args.s.indexOf(args.t)", "args.s.lastIndexOf(args.t)", "args.s.indexOf(args.t, 3)", "string(args.s).indexOf(string(args.t))",
	} {
		program, err := Compile(Call, src, Any)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		started := time.Now()
		if _, err := program.Eval(context.Background(), vars); err == nil || !strings.Contains(err.Error(), "too ") {
			t.Errorf("%s: got %v", src, err)
		}
		if took := time.Since(started); took > time.Minute {
			t.Errorf("%s took %v", src, took)
		}
	}
	for src, want := range map[string]any{
		"[1, 2, 1].distinct()": []any{int64(1), int64(2)}, "sets.contains([1, 2], [1])": true, "'abcabc'.lastIndexOf('b')": int64(4), "'abcabc'.indexOf('b', 2)": int64(4),
	} {
		program, err := Compile(Call, src, Any)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if got, err := program.Eval(context.Background(), vars); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: got %v, %v", src, got, err)
		}
	}
}

func TestEvalStopsWithItsContext(t *testing.T) {
	program, err := Compile(Call, "args.l.map(a, args.l.map(b, a + b)).size()", Any)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]any, 600)
	for i := range list {
		list[i] = int64(i)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := program.Eval(ctx, map[string]any{VarArgs: map[string]any{"l": list}, VarPrincipal: Anonymous().Var()}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestFilterKeysAlwaysExist(t *testing.T) {
	vars := ToolVars(map[string]any{"name": "a", "annotations": map[string]any{"readOnlyHint": true}}, map[string]string{"team": "x"}, "mcptool/a")
	for src, want := range map[string]bool{
		"tool.metadata.category != 'internal'":   true,
		"tool.metadata.role == ''":               true,
		"tool.metadata.team == 'x'":              true,
		"tool.title == '' && tool.name == 'a'":   true,
		"tool.annotations.readOnlyHint":          true,
		"has(tool.annotations.destructiveHint)":  false,
		"tool.source.startsWith('mcptool/')":     true,
		"tool.metadata.costCategory in ['high']": false,
	} {
		program, err := Compile(Filter, src, Bool)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if got, err := program.Eval(context.Background(), vars); err != nil || got != want {
			t.Errorf("%s: got %v, %v", src, got, err)
		}
	}
}

func FuzzCompileAndEval(f *testing.F) {
	f.Add("args.a.map(x, x + 1)")
	f.Add("'%d %s'.format([1, args])")
	f.Add("{'a': b'x', 'b': [1u, 2.5, null, duration('1s'), timestamp(0)], 'c': args}")
	f.Add("[1.0 / 0.0]")
	f.Add("{1: type(1)}")
	f.Fuzz(func(t *testing.T, src string) {
		program, err := Compile(Call, src, Any)
		if err != nil {
			if len(err.Error()) > MaxError {
				t.Fatalf("error of %d bytes", len(err.Error()))
			}
			return
		}
		value, err := program.Eval(context.Background(), map[string]any{VarArgs: map[string]any{"a": []any{int64(1)}, "\xff": "\xff"}, VarPrincipal: Anonymous().Var()})
		if err != nil {
			if len(err.Error()) > 2*MaxError {
				t.Fatalf("error of %d bytes", len(err.Error()))
			}
			return
		}
		// What comes out is JSON, and not more than may be.
		raw, err := json.Marshal(value)
		if err != nil || len(raw) > 8*maxResultBytes {
			t.Fatalf("%T of %d bytes: %v", value, len(raw), err)
		}
		if !isKind(Any, value) {
			t.Fatalf("a value of type %T", value)
		}
	})
}
