// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"errors"
	"net/netip"
	"syscall"
)

// Policy says which addresses are never dialled. It is asked with the address
// of each connection, after DNS, so that no name can lead around it.
type Policy struct {
	// Deny are further networks that are refused (--probe-deny-cidrs).
	Deny []netip.Prefix
	// AllowLoopback lets 127.0.0.0/8 and ::1 through. For tests.
	AllowLoopback bool
}

// errDenied is what a refused dial fails with.
var errDenied = errors.New("address refused by policy")

// metadata are the addresses of cloud metadata services that are not
// link-local: AWS over IPv6, Alibaba, Azure's wire server, Oracle.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("192.0.0.192"),
}

// embedding prefixes carry an IPv4 address at the given byte: NAT64 and 6to4.
var embedding = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
}

// Allows reports whether addr may be dialled.
func (p Policy) Allows(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if addr.IsLoopback() {
		return p.AllowLoopback && !p.denied(addr)
	}
	if !p.allowsOne(addr) {
		return false
	}
	for _, e := range embedding {
		if e.prefix.Contains(addr) {
			raw := addr.As16()
			inner := netip.AddrFrom4([4]byte(raw[e.at : e.at+4]))
			return !inner.IsLoopback() && p.allowsOne(inner)
		}
	}
	return true
}

func (p Policy) allowsOne(addr netip.Addr) bool {
	switch {
	case !addr.IsValid(), addr.IsUnspecified(), addr.IsMulticast(), addr.IsLinkLocalUnicast():
		return false
	case addr.Is4() && (addr.As4()[0] == 0 || addr.As4()[0] >= 240):
		return false
	}
	for _, m := range metadata {
		if addr == m {
			return false
		}
	}
	return !p.denied(addr)
}

func (p Policy) denied(addr netip.Addr) bool {
	for _, prefix := range p.Deny {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// control is net.Dialer.Control: it sees the address that is about to be dialled.
func (p Policy) control(_, address string, _ syscall.RawConn) error {
	addrPort, err := netip.ParseAddrPort(address)
	if err != nil || !p.Allows(addrPort.Addr()) {
		return errDenied
	}
	return nil
}
