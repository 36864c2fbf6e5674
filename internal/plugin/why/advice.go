// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"regexp"
	"strings"
)

// The messages of conditions say first what is so, then what to do, in
// sentences that begin with a verb. These are the verbs.
var verb = regexp.MustCompile(`^(Read|Check|Give|Create|Add|Set|Use|Allow|Look|Ask|Raise|Name|Point|See|Fix|Mend|Rename|Correct|Spread|Shorten|Delete|Remove|Install|Choose|Scale|Make|Break|Wait|Have|Let|Put|Pin|Renew|Leave|Replace|Write|Try|Lower|Increase|Start|Change|Connect|Grant|Serve|Keep|Take|Move|Turn|Upgrade|Find|If the)\b`)

// sentenceEnd is a stop that a capital follows. A file name has neither.
var sentenceEnd = regexp.MustCompile(`[.!?] [A-Z0-9]`)

// split parts a message into what is so and what to do.
func split(message string) (what string, do []string) {
	var told []string
	for _, s := range sentences(message) {
		if verb.MatchString(s) {
			do = append(do, s)
		} else {
			told = append(told, s)
		}
	}
	if len(told) == 0 {
		return message, nil
	}
	return strings.Join(told, " "), do
}

// sentences parts text where a stop, a space and a capital follow each other.
func sentences(text string) []string {
	var out []string
	for {
		at := sentenceEnd.FindStringIndex(text)
		if at == nil {
			return append(out, text)
		}
		out = append(out, text[:at[0]+1])
		text = text[at[0]+2:]
	}
}
