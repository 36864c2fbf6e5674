// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// installed is the program's name in the folder that it is copied to.
const installed = "server"

// install copies this program into a folder, for pods whose image is another.
func install(args []string, stderr io.Writer) int {
	if len(args) != 1 {
		_, _ = fmt.Fprintln(stderr, "usage: server install FOLDER")
		return 2
	}
	if err := copySelf(filepath.Join(args[0], installed)); err != nil {
		_, _ = fmt.Fprintf(stderr, "install: %v\n", err)
		return 1
	}
	return 0
}

// copySelf writes the running program to path, whole or not at all.
func copySelf(path string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(path+".part", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755) //nolint:gosec // Any user runs it.
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	return os.Rename(path+".part", path) //nolint:gosec // The folder is the command's argument.
}
