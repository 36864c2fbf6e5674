// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import "flag"

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

// CheckFlags is CheckSection for the flags of a program.
func CheckFlags(file, name string, fs *flag.FlagSet, update bool) (current bool, err error) {
	return CheckSection(file, "flags "+name, Flags(fs), update)
}
