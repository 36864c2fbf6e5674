// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// secret mounts a Secret as the kubelet does: a new folder, then one swap.
func secret(t *testing.T, folder, version string, keys map[string]string) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.MkdirAll(filepath.Join(folder, "..v"+version), 0o750))
	for name, value := range keys {
		check(os.WriteFile(filepath.Join(folder, "..v"+version, name), []byte(value), 0o600))
	}
	check(os.Symlink("..v"+version, filepath.Join(folder, "..data_tmp")))
	check(os.Rename(filepath.Join(folder, "..data_tmp"), filepath.Join(folder, "..data")))
}

func TestAPIKeys(t *testing.T) {
	root, clock := t.TempDir(), &testClock{}
	k := keeper(t, clock, root)
	a := k.Build(&serverconfig.Config{Auth: &serverconfig.Auth{APIKeys: &serverconfig.APIKeys{Secret: "keys"}}})
	as := func(name, value string) string {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header.Set(name, value)
		return outcome(a.Authenticate(r))
	}
	if got := as("X-API-Key", "one"); got != ReasonInvalidToken {
		t.Errorf("not mounted yet: %s", got)
	}
	if present, _ := a.KeysStatus(); present {
		t.Error("what is not mounted is present")
	}
	secret(t, filepath.Join(root, "keys"), "1", map[string]string{"ci": "one\n", "desk": "two", "empty": "", "line": "\n"})
	clock.forward(recheck)
	tests := []struct{ header, value, want string }{
		{"Authorization", "Bearer one", "APIKey ci"},
		{"X-API-Key", "one", "APIKey ci"},
		{"X-API-Key", " two ", "APIKey desk"},
		{"X-API-Key", "on", ReasonInvalidToken},
		{"X-API-Key", "one\x00", ReasonInvalidToken},
		{"X-API-Key", "ci", ReasonInvalidToken},
		{"X-API-Key", "", ReasonAuthRequired},
		{"Authorization", "Bearer three", ReasonInvalidToken},
	}
	for _, test := range tests {
		if got := as(test.header, test.value); got != test.want {
			t.Errorf("%s: %q: %s, want %s", test.header, test.value, got, test.want)
		}
	}
	if present, at := a.KeysStatus(); !present || time.Since(at) > time.Minute {
		t.Errorf("present %v at %v", present, at)
	}

	secret(t, filepath.Join(root, "keys"), "2", map[string]string{"ci": "three"})
	if got := as("X-API-Key", "one"); got != "APIKey ci" {
		t.Errorf("looked again at once: %s", got)
	}
	clock.forward(recheck)
	if got := as("X-API-Key", "one"); got != ReasonInvalidToken {
		t.Errorf("the old key: %s", got)
	}
	if got := as("X-API-Key", "three"); got != "APIKey ci" {
		t.Errorf("the new key: %s", got)
	}

	// A catalog that names another Secret does not take this one's keys.
	other := k.Build(&serverconfig.Config{Auth: &serverconfig.Auth{APIKeys: &serverconfig.APIKeys{Secret: "others"}}})
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header.Set("X-API-Key", "three")
	if got := outcome(other.Authenticate(r)); got != ReasonInvalidToken {
		t.Errorf("another Secret: %s", got)
	}

	if err := os.RemoveAll(filepath.Join(root, "keys")); err != nil {
		t.Fatal(err)
	}
	clock.forward(recheck)
	if got := as("X-API-Key", "three"); got != ReasonInvalidToken {
		t.Errorf("the Secret is gone: %s", got)
	}
}

// TestFolderName: a Secret's name leads out of the folder of keys by no means.
func TestFolderName(t *testing.T) {
	root := t.TempDir()
	secret(t, filepath.Join(root, "outside"), "1", map[string]string{"a": "one"})
	a := keeper(t, &testClock{}, filepath.Join(root, "keys")).Build(&serverconfig.Config{
		Auth: &serverconfig.Auth{APIKeys: &serverconfig.APIKeys{Secret: "../outside"}},
	})
	if got := outcome(a.Authenticate(bearer("one"))); got != ReasonInvalidToken {
		t.Error(got)
	}
}
