// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package serverconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample gives a config of about n bytes that hardly compresses (of any seed
// the same, of another seed another).
func sample(seed uint64, n int) *Config {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	random := rand.New(rand.NewPCG(seed, 1))
	c := &Config{
		Version: Version, Server: ServerInfo{Name: fmt.Sprint("s", seed), Version: "1", Instructions: "<&>"},
		Transports: []Transport{{Type: TransportStreamableHTTP, Path: "/mcp"}},
	}
	for written := 0; written < n; {
		text := make([]byte, min(10000, n-written))
		for i := range text {
			text[i] = alphabet[random.IntN(len(alphabet))]
		}
		c.Tools = append(c.Tools, Tool{
			Name: fmt.Sprintf("t%d", len(c.Tools)), Source: "mcptool/x",
			Definition: json.RawMessage(fmt.Sprintf(`{"name":"t","description":%q}`, text)),
			Expression: &Result{Text: "'<&>'"},
		})
		written += len(text)
	}
	return c
}

// files are a set as it lies on a pod's disk.
type files map[string][]byte

func filesOf(s *Set) files {
	out := files{IndexKey: s.Index}
	for i, key := range s.Keys {
		out[key] = s.Parts[i]
	}
	return out
}

func (f files) read(name string) ([]byte, error) {
	raw, ok := f[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return raw, nil
}

func cut(t *testing.T, c *Config) *Set {
	t.Helper()
	set, err := Cut(c)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestRoundTrip: what is cut is joined again, of each size class.
func TestRoundTrip(t *testing.T) {
	tests := map[string]struct {
		bytes    int
		encoding string
		parts    int
	}{
		"empty":            {0, "", 1},
		"small":            {1000, "", 1},
		"just plain":       {200 << 10, "", 1},
		"compressed":       {300 << 10, "gzip", 1},
		"two shards":       {1400 << 10, "gzip", 2},
		"three shards":     {2800 << 10, "gzip", 3},
		"almost what fits": {3400 << 10, "gzip", 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := sample(1, test.bytes)
			set := cut(t, c)
			var index Index
			if err := json.Unmarshal(set.Index, &index); err != nil {
				t.Fatal(err)
			}
			if index.Encoding != test.encoding || len(set.Parts) != test.parts || len(set.Keys) != test.parts || len(index.Parts) != test.parts {
				t.Errorf("encoding %q, %d parts, %d keys, %d in the index; want %q and %d", index.Encoding, len(set.Parts), len(set.Keys), len(index.Parts), test.encoding, test.parts)
			}
			for i, part := range set.Parts {
				if len(part) > MaxPartBytes {
					t.Errorf("part %d has %d bytes", i, len(part))
				}
			}
			got, digest, err := Join(filesOf(set).read)
			if err != nil {
				t.Fatal(err)
			}
			if digest != set.Digest || digest != index.Digest {
				t.Errorf("digests: joined %s, cut %s, index %s", digest, set.Digest, index.Digest)
			}
			if !bytes.Equal(encoded(t, c), encoded(t, got)) {
				t.Error("what was joined is not what was cut")
			}
			if again := cut(t, sample(1, test.bytes)); !reflect.DeepEqual(set, again) {
				t.Error("cut twice, two results")
			}
		})
	}
}

func encoded(t *testing.T, c *Config) []byte {
	t.Helper()
	raw, err := Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestTooLarge(t *testing.T) {
	_, err := Cut(sample(1, 4000<<10))
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v, want ErrTooLarge", err)
	}
}

// TestMixedSets: while the kubelet replaces files, a reader may see any of
// the old set beside any of the new one. It must get one of the two whole, or
// ErrIncomplete.
func TestMixedSets(t *testing.T) {
	for name, sizes := range map[string][2]int{
		"one part each":   {1000, 2000},
		"growing":         {1000, 1400 << 10},
		"shrinking":       {1400 << 10, 1000},
		"shards each":     {1400 << 10, 1500 << 10},
		"another count":   {1400 << 10, 2800 << 10},
		"into compressed": {1000, 300 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			old, young := cut(t, sample(1, sizes[0])), cut(t, sample(2, sizes[1]))
			before, after := filesOf(old), filesOf(young)
			names := map[string]bool{}
			for key := range maps.Keys(before) {
				names[key] = true
			}
			for key := range maps.Keys(after) {
				names[key] = true
			}
			keys := make([]string, 0, len(names))
			for key := range names {
				keys = append(keys, key)
			}
			// Each file is the old one, the new one, or missing.
			total := 1
			for range keys {
				total *= 3
			}
			for mix := range total {
				disk, whole := mixed(before, after, keys, mix)
				_, digest, err := Join(disk.read)
				switch {
				case whole != "" && (err != nil || digest != map[string]string{"old": old.Digest, "new": young.Digest}[whole]):
					t.Errorf("mix %d is the whole %s set: digest %s, error %v", mix, whole, digest, err)
				case whole == "" && disk[IndexKey] == nil && !errors.Is(err, fs.ErrNotExist):
					t.Errorf("mix %d has no index: error %v", mix, err)
				case whole == "" && disk[IndexKey] != nil && !errors.Is(err, ErrIncomplete):
					t.Errorf("mix %d is torn: digest %s, error %v", mix, digest, err)
				}
			}
		})
	}
}

// mixed takes each file from before, from after or from nowhere, by the digits
// of mix to the base 3, and says which set is whole in the outcome.
func mixed(before, after files, keys []string, mix int) (files, string) {
	disk := files{}
	for _, key := range keys {
		from := files(nil)
		switch mix % 3 {
		case 0:
			from = before
		case 1:
			from = after
		}
		mix /= 3
		if raw, ok := from[key]; ok {
			disk[key] = raw
		}
	}
	switch {
	case contains(disk, before):
		return disk, "old"
	case contains(disk, after):
		return disk, "new"
	default:
		return disk, ""
	}
}

func contains(disk, set files) bool {
	for key, want := range set {
		if got, ok := disk[key]; !ok || string(got) != string(want) {
			return false
		}
	}
	return true
}

// TestJoinRefuses: what no operator writes.
func TestJoinRefuses(t *testing.T) {
	sound := cut(t, sample(1, 300<<10))
	tests := map[string]func(files){
		"an index that is no JSON":   func(f files) { f[IndexKey] = []byte("{") },
		"an index of another type":   func(f files) { f[IndexKey] = []byte("[]") },
		"an unknown encoding":        func(f files) { f[IndexKey] = recode(f[IndexKey], func(i *Index) { i.Encoding = "zstd" }) },
		"gzip that is none":          func(f files) { f[IndexKey] = recode(f[IndexKey], func(i *Index) { i.Encoding = "" }) },
		"a part that was cut":        func(f files) { f["catalog-0"] = f["catalog-0"][:1000] },
		"a digest of something else": func(f files) { f[IndexKey] = recode(f[IndexKey], func(i *Index) { i.Digest = Digest(nil) }) },
		"no parts":                   func(f files) { f[IndexKey] = recode(f[IndexKey], func(i *Index) { i.Parts = nil }) },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			f := filesOf(sound)
			spoil(f)
			if c, _, err := Join(f.read); err == nil {
				t.Errorf("joined: %v", c.Server)
			}
		})
	}
}

func recode(raw []byte, change func(*Index)) []byte {
	var index Index
	if err := json.Unmarshal(raw, &index); err != nil {
		return raw
	}
	change(&index)
	out, err := json.Marshal(index)
	if err != nil {
		return raw
	}
	return out
}

// TestBomb: a payload that inflates beyond the bound is refused.
func TestBomb(t *testing.T) {
	body, err := deflate(make([]byte, MaxPayloadBytes+1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inflate(body); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v, want ErrTooLarge", err)
	}
}

func TestMissing(t *testing.T) {
	c := &Config{Requires: []string{"timeTravel", "telepathy"}}
	if diff := cmp.Diff([]string{"timeTravel", "telepathy"}, c.Missing()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (&Config{}).Missing(); got != nil {
		t.Errorf("requires nothing, misses %v", got)
	}
}

// FuzzJoin: whatever lies on the disk, Join does not panic, and what it
// returns is what its digest says.
func FuzzJoin(f *testing.F) {
	for _, size := range []int{0, 1000, 300 << 10} {
		set, err := Cut(sample(1, size))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(set.Index, set.Parts[0], []byte(nil))
		f.Add(set.Index, set.Parts[0][:len(set.Parts[0])/2], set.Parts[0])
	}
	f.Add([]byte(`{"version":1,"digest":"sha256:","parts":[{"key":"index.json","sha256":""}]}`), []byte(nil), []byte(nil))
	f.Add([]byte(`null`), []byte(`{}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, index, first, second []byte) {
		disk := files{IndexKey: index, "catalog-0": first, "catalog-1": second}
		c, digest, err := Join(disk.read)
		if err != nil {
			return
		}
		if c == nil || digest == "" {
			t.Fatalf("no error and no config: %v, %q", c, digest)
		}
		if _, err := Encode(c); err != nil {
			t.Fatalf("joined, but cannot be encoded: %v", err)
		}
	})
}
