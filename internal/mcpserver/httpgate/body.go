// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package httpgate

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

const (
	// readLimit is how long a body may take: a slow peer must not hold what
	// others need.
	readLimit = 60 * time.Second
	// grown is how much room is made at once for a body that is announced.
	grown = 256 << 10
)

// Body reads the message of a request, of at most limit bytes. The status goes
// with the error.
func Body(w http.ResponseWriter, r *http.Request, into *bytes.Buffer, limit int64) (int, *wire.Error) {
	tooLarge := func() (int, *wire.Error) {
		return http.StatusRequestEntityTooLarge, &wire.Error{
			Code: mcp.CodeTooLarge, Message: "the message is larger than " + strconv.FormatInt(limit, 10) + " bytes", Data: wire.Data("MessageTooLarge"),
		}
	}
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close")
		return tooLarge()
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readLimit)) // Not every writer has deadlines.
	if n := r.ContentLength; n > 0 {
		into.Grow(int(min(n, grown)) + bytes.MinRead)
	}
	_, err := into.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	_ = control.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge()
	case err != nil && !errors.Is(err, io.EOF):
		return http.StatusBadRequest, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "the message was not received whole"}
	}
	return 0, nil
}
