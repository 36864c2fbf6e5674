// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Exit codes of the plugin.
const (
	// ExitOK: done, and what was asked for is so.
	ExitOK = 0
	// ExitNo: done, and the answer is no: not ready, a tool that answered
	// isError, a contract that is not met.
	ExitNo = 1
	// ExitError: it could not be done, or not be found out.
	ExitError = 2
)

// No is an answer that is no. It was told already, and is not printed.
var No = errors.New("the answer is no") //nolint:errname,revive,staticcheck // It reads env.No.

// hinted is an error with what to try.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// Hint adds to err what the user can try, in one or two plain sentences.
func Hint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return hinted{err, hint}
}

// HintOf gives what the user can try, empty for none.
func HintOf(err error) string {
	var h hinted
	if errors.As(err, &h) {
		return h.hint
	}
	return ""
}

// Finish prints err, and what to try, and returns the exit code.
func Finish(out io.Writer, err error) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, No):
		return ExitNo
	case errors.Is(err, context.Canceled):
		return ExitError
	}
	fmt.Fprintf(out, "error: %v\n", err)
	if hint := HintOf(err); hint != "" {
		fmt.Fprintf(out, "%s\n", hint)
	}
	return ExitError
}
