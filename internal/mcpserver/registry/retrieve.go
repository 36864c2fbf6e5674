// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// SourceBuiltIn is the source of what the server has by itself.
const SourceBuiltIn = "server"

// retrieveDefinition is the tool that reads resources for clients that know
// tools only.
const retrieveDefinition = `{"name":"` + serverconfig.RetrieveTool + `","title":"Retrieve resources",` +
	`"description":"Reads resources of this server. Without uri it lists the resources and resource templates that you may read; ` +
	`with uri, also one that a template makes, it gives the content.",` +
	`"inputSchema":{"type":"object","additionalProperties":false,"properties":{` +
	`"uri":{"type":"string","maxLength":2048,"description":"The resource to read. Leave it out to list what there is."},` +
	`"limit":{"type":"integer","minimum":1,"maximum":10485760,"description":"At most so many entries of a list (100 by default), or bytes of content (65536 by default)."}}},` +
	`"annotations":{"readOnlyHint":true}}`

// addRetrieve adds that tool to those that are declared, unless one of them
// has its name.
func (s *Snapshot) addRetrieve(tools []declared[*Tool]) []declared[*Tool] {
	if !s.Config.Retrieve {
		return tools
	}
	for _, t := range tools {
		if t.name == serverconfig.RetrieveTool {
			s.reject(kindTool, serverconfig.RetrieveTool, podreport.ReasonConflict, "a declared tool stands in the place of the server's own")
			return tools
		}
	}
	config := serverconfig.Tool{Name: serverconfig.RetrieveTool, Definition: json.RawMessage(retrieveDefinition), Source: SourceBuiltIn}
	own := declareTool(config, func(*serverconfig.Tool, *schema.Schema) (call.Handler, error) { return call.Func(nobody), nil })
	build := own.build
	own.same = func(t *Tool) bool { return t.Retrieve }
	own.build = func() (*Tool, *buildError) {
		t, err := build()
		if err == nil {
			t.Retrieve = true
		}
		return t, err
	}
	return append(tools, own)
}

// nobody answers for a tool that the engine answers itself.
func nobody(context.Context, *call.Call) (*call.Result, error) {
	return nil, call.Fail(call.Internal, "the tool is answered elsewhere")
}
