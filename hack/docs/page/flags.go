// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"flag"
	"os"
)

// Flags is a table of the flags of a program.
func Flags(fs *flag.FlagSet) string {
	var rows [][]string
	fs.VisitAll(func(f *flag.Flag) {
		value := f.DefValue
		if value != "" {
			value = Code(value)
		}
		rows = append(rows, []string{Code("--" + f.Name), value, Cell(f.Usage)})
	})
	return Table([]string{"flag", "default", "what"}, rows)
}

// CheckFlags compares the section "flags NAME" of a file with the table of fs.
// It gives the text that the section should have, whether it has it, and, with
// update, writes it.
func CheckFlags(file, name string, fs *flag.FlagSet, update bool) (current bool, err error) {
	before, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	found := false
	after, err := Fill(string(before), func(words []string) (string, error) {
		if len(words) == 2 && words[0] == "flags" && words[1] == name {
			found = true
			return Flags(fs), nil
		}
		return Section(string(before), words), nil
	})
	if err != nil || !found || after == string(before) {
		return found && err == nil, err
	}
	if update {
		return true, os.WriteFile(file, []byte(after), 0o644)
	}
	return false, nil
}
