package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// egress says to which addresses the agent may connect. The zero egress allows all addresses.
type egress struct {
	// Allowed host names in lower case; "*.example.com" allows all names below example.com.
	names       []string
	ranges      []netip.Prefix // allowed addresses
	listed      bool           // allow_hosts is not empty: no other hosts and ranges are allowed
	denyPrivate bool           // private addresses are refused, except those in the field `ranges`
}

var hostPattern = regexp.MustCompile(`^(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$`)

// newEgress makes an egress from the arguments allow_hosts and deny_private. The parameter `list`
// holds the value of allow_hosts. If an entry of the list is wrong, newEgress returns an error. It
// also returns an error if there are restrictions and the environment names a proxy. The reason:
// the proxy would connect to the services, so this agent could not check their addresses.
func newEgress(list []string, denyPrivate bool) (egress, error) {
	e := egress{listed: len(list) > 0, denyPrivate: denyPrivate}
	for _, text := range list {
		if p, err := netip.ParsePrefix(text); err == nil {
			e.ranges = append(e.ranges, p.Masked())
			continue
		}
		if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
			a = a.Unmap().WithZone("")
			e.ranges = append(e.ranges, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		name := hostName(text)
		if !hostPattern.MatchString(name) {
			return egress{}, fmt.Errorf("allow_hosts: %q is none of a host name, a name such as \"*.example.com\", an address, or a range such as \"10.1.0.0/16\"", text)
		}
		e.names = append(e.names, name)
	}
	if e.guards() {
		for _, v := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
			if os.Getenv(v) != "" {
				return egress{}, fmt.Errorf("allow_hosts and deny_private cannot be used with a proxy, which makes the connections itself: remove %s from env of the agent block, and let the proxy decide", v)
			}
		}
	}
	return e, nil
}

// guards reports whether this egress has restrictions. An egress without restrictions allows every
// address.
func (e egress) guards() bool { return e.listed || e.denyPrivate }

func hostName(text string) string { return strings.TrimSuffix(strings.ToLower(text), ".") }

// named reports whether host matches one of the allowed host names in e.names.
func (e egress) named(host string) bool {
	host = hostName(host)
	for _, n := range e.names {
		if n == host {
			return true
		}
		if below, ok := strings.CutPrefix(n, "*"); ok && strings.HasSuffix(host, below) {
			return true
		}
	}
	return false
}

// refused is the error for an address to which the agent may not connect.
type refused struct{ text string }

func (r *refused) Error() string { return r.text }

// check returns an error if the agent may not connect to an IP address. The parameter `host` is the
// host name or address that was resolved to this IP address.
func (e egress) check(host string, address netip.Addr) error {
	address = address.Unmap().WithZone("")
	for _, r := range e.ranges {
		if r.Contains(address) {
			return nil
		}
	}
	switch {
	case e.listed && !e.named(host):
		return &refused{fmt.Sprintf("%s (%s) is not in allow_hosts of the agent", host, address)}
	case e.denyPrivate && private(address):
		return &refused{fmt.Sprintf("%s is the private address %s, which deny_private of the agent refuses", host, address)}
	}
	return nil
}

// dial connects to the host in the parameter `address` (HOST:PORT). If the egress has restrictions,
// dial checks the IP address of the host first, and connects to exactly this IP address. So the
// check also works after a redirect, and for a host name that later resolves to another IP address.
func (e egress) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	if e.guards() {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, &refused{fmt.Sprintf("%q is no address", address)}
		}
		d.Control = func(_, resolved string, _ syscall.RawConn) error {
			a, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return &refused{fmt.Sprintf("%q is no address", resolved)}
			}
			return e.check(host, a.Addr())
		}
	}
	return d.DialContext(ctx, network, address)
}

// notPublic holds address ranges that do not lead to a public host and for which netip has no
// method. They are: "this network", shared and reserved addresses, test networks, and IPv6
// ranges that a translator maps to IPv4 addresses.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// private reports whether an address does not belong to a public host.
func private(a netip.Addr) bool {
	if a.IsPrivate() || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast() {
		return true
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
