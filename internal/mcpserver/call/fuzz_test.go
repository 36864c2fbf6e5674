// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// FuzzParkedIn: a state of ours is read as it was written, and no state that
// is read makes one that reads otherwise.
func FuzzParkedIn(f *testing.F) {
	f.Add([]byte(`"espalier1.abcdefgh.XYZ"`))
	f.Add([]byte(`"espalier1.."`))
	f.Add([]byte(`"\u0065spalier1.a.b.c"`))
	f.Add([]byte(`{"espalier1.":1}`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, state []byte) {
		owner, id, ok := ParkedIn(state)
		if IsParked(state) != ok {
			t.Fatal("IsParked and ParkedIn differ")
		}
		if !ok {
			return
		}
		if len(state) > maxState || len(owner)+len(id) > maxState || strings.Contains(owner, ".") {
			t.Fatalf("%q is of %q, %q", state, owner, id)
		}
		if !wire.Valid(state) {
			return // It came out of a message that was.
		}
		var text string
		if err := json.Unmarshal(state, &text); err != nil || text != statePrefix+owner+"."+id {
			t.Fatalf("%q is read as %q, %q, by others as %q", state, owner, id, text)
		}
		if again, same, ok := ParkedIn(ParkedState(owner, id)); len(ParkedState(owner, id)) <= maxState && (!ok || again != owner || same != id) {
			t.Fatalf("%q, %q are read as %q, %q", owner, id, again, same)
		}
	})
}
