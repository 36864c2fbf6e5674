// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/watch"
)

type watchInterface = watch.Interface

var timeZero = time.Unix(0, 0)

func parsed(t *testing.T, args ...string) *Flags {
	t.Helper()
	f := &Flags{}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddTo(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFlags: what the user gives stands in place of what the spec names.
func TestFlags(t *testing.T) {
	one := &Endpoint{Header: http.Header{"X-A": {"spec"}, "X-B": {"spec"}}}
	two := &Endpoint{}
	f := parsed(t, "--header", "x-a: 1", "--header", "X-A:2", "--token-file", "-")
	if err := f.Apply(strings.NewReader("sesame\n"), one, two); err != nil {
		t.Fatal(err)
	}
	want := http.Header{"X-A": {"1", "2"}, "X-B": {"spec"}, "Authorization": {"Bearer sesame"}}
	if diff := cmp.Diff(want, one.Header); diff != "" || !one.Credential || !f.Given() {
		t.Errorf("(-want +got):\n%s", diff)
	}
	delete(want, "X-B")
	if diff := cmp.Diff(want, two.Header); diff != "" || !two.Credential {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFlagsRefused: each is refused in words that hold no value.
func TestFlagsRefused(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := map[string]struct {
		args []string
		want string
	}{
		"no colon":   {[]string{"--header", "s3cret"}, "no name before a colon"},
		"odd name":   {[]string{"--header", "a b: s3cret"}, "no name before a colon"},
		"odd value":  {[]string{"--header", "A: s3cret\x01"}, "characters that no header may have"},
		"reserved":   {[]string{"--header", "Mcp-Session-Id: s3cret"}, "cannot be set"},
		"twice":      {[]string{"--header", "authorization: s3cret", "--token-file", write("t", "s3cret")}, "twice"},
		"empty":      {[]string{"--token-file", write("e", "\n")}, "holds no token"},
		"two lines":  {[]string{"--token-file", write("l", "s3cret\ns3cret")}, "holds no token"},
		"no file":    {[]string{"--token-file", filepath.Join(folder, "none")}, "no such file"},
		"no CA file": {[]string{"--server-ca", write("ca", "s3cret")}, "no certificate"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := parsed(t, test.args...).Apply(strings.NewReader(""), &Endpoint{})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v", err)
			}
		})
	}
}
