// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestSummarise(t *testing.T) {
	tests := map[string]struct {
		in, out string
		ok      bool
	}{
		"all pass": {
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"BENCH x 1 s\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Elapsed":1.25}
{"Action":"skip","Package":"q"}`,
			out: "BENCH x 1 s\nok  \tp\t1.2s\n1 passed, 0 failed\n",
			ok:  true,
		},
		"a test fails": {
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"wrong\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p"}`,
			out: "wrong\nFAIL\n1 passed, 1 failed\n",
		},
		"a package cannot be built": {
			in: `{"ImportPath":"p","Action":"build-output","Output":"undefined: x\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p"}`,
			out: "undefined: x\nFAIL\tp [build failed]\n0 passed, 1 failed\n",
		},
		"the go command speaks": {
			in:  "go: cannot find main module",
			out: "go: cannot find main module\n0 passed, 0 failed\n",
			ok:  true, // Its exit status tells.
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			ok := summarise(strings.NewReader(test.in), &out)
			if ok != test.ok || out.String() != test.out {
				t.Errorf("got %v and\n%s\nwant %v and\n%s", ok, out.String(), test.ok, test.out)
			}
		})
	}
}
