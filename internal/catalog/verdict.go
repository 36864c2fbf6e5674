// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// Verdict says whether something was accepted, and why.
type Verdict struct {
	Accepted bool
	Reason   string
	Message  string
}

func accepted(reason, message string) Verdict {
	return Verdict{Accepted: true, Reason: reason, Message: message}
}

func refused(reason, format string, args ...any) Verdict {
	return Verdict{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// NotFronted is the verdict on what names a server that serves no
// registrations.
func NotFronted(server *mcpv1.MCPServer) Verdict {
	return refused(mcpv1.ReasonServerNotFronted,
		"MCPServer %s is of type %s and serves what it has itself. Name an MCPServer of type Tools or Stdio.", server.Name, server.Spec.Type)
}
