package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk"
)

func TestPrivateAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1": true, "10.1.2.3": true, "172.16.0.1": true, "192.168.1.1": true, "169.254.169.254": true,
		"100.64.0.1": true, "0.0.0.0": true, "0.1.2.3": true, "255.255.255.255": true, "224.0.0.1": true, "198.18.0.1": true,
		"::1": true, "::": true, "fe80::1": true, "fd00::1": true, "ff02::1": true, "::ffff:10.0.0.1": true, "::10.0.0.1": true,
		"64:ff9b::a00:1": true, "2002:a00:1::": true, "2001:0:a00:1::": true,
		"8.8.8.8": false, "1.1.1.1": false, "172.32.0.1": false, "2606:4700::1111": false, "::ffff:8.8.8.8": false,
	} {
		if got := private(netip.MustParseAddr(text).Unmap()); got != want {
			t.Errorf("private(%s) = %t, want %t", text, got, want)
		}
	}
}

func TestEgressNames(t *testing.T) {
	e, err := newEgress([]string{"api.example.com", "*.Example.org.", "10.1.0.0/16", "::1"}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		host, address string
		ok            bool
	}{
		{"api.example.com", "8.8.8.8", true},
		{"API.example.com.", "8.8.8.8", true},
		{"example.com", "8.8.8.8", false},
		{"xapi.example.com", "8.8.8.8", false},
		{"a.b.example.org", "8.8.8.8", true},
		{"example.org", "8.8.8.8", false},
		{"badexample.org", "8.8.8.8", false},
		{"api.example.com", "127.0.0.1", false},       // the name was resolved to a private address
		{"api.example.com", "10.1.2.3", true},         // which is listed
		{"api.example.com", "::ffff:10.2.0.1", false}, // and this is not
		{"other", "10.1.2.3", true},
		{"other", "::1", true},
		{"other", "8.8.8.8", false},
	} {
		if err := e.check(test.host, netip.MustParseAddr(test.address)); (err == nil) != test.ok {
			t.Errorf("check(%s, %s) = %v, want allowed: %t", test.host, test.address, err, test.ok)
		}
	}
	for _, bad := range []string{"", "http://a", "a:80", "*", "a b", "10.0.0.0/33", "*.*.a"} {
		if _, err := newEgress([]string{bad}, false); err == nil {
			t.Errorf("allow_hosts = [%q] is accepted", bad)
		}
	}
}

// What is refused is refused at the connection: nothing reaches the service, not
// through a name and not through a redirect.
func TestEgress(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++ }))
	defer s.Close()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	byName := "http://localhost:" + port
	for name, test := range map[string]struct {
		config in
		url    string
		ok     bool
	}{
		"without a rule":              {in{}, s.URL, true},
		"private":                     {in{"deny_private": true}, s.URL, false},
		"private by name":             {in{"deny_private": true}, byName, false},
		"private, but listed":         {in{"deny_private": true, "allow_hosts": []string{"127.0.0.0/8"}}, s.URL, true},
		"listed name":                 {in{"allow_hosts": []string{"localhost"}}, byName, true},
		"listed name that is private": {in{"allow_hosts": []string{"localhost"}, "deny_private": true}, byName, false},
		"listed range":                {in{"allow_hosts": []string{"127.0.0.0/8", "::1"}}, byName, true},
		"not listed":                  {in{"allow_hosts": []string{"example.com", "10.0.0.0/8"}}, s.URL, false},
		"not listed by name":          {in{"allow_hosts": []string{"example.com"}}, byName, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := asked
			reply := invoke(t, open(t, test.config), "post", in{"url": test.url})
			switch {
			case test.ok && (reply.Outcome != sdk.OutcomeResult || asked != before+1):
				t.Errorf("reply = %+v, asked %d times", reply, asked-before)
			case !test.ok && (reply.Outcome != sdk.OutcomeFailed || reply.Code != sdk.CodeDenied || !reply.Permanent || asked != before):
				t.Errorf("reply = %+v, asked %d times, want that it is denied", reply, asked-before)
			}
		})
	}
}

func TestEgressWithAProxy(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	a := newAgent()
	if err := a.Configure(t.Context(), []byte(`{"deny_private":true}`)); err == nil || !strings.Contains(err.Error(), "HTTPS_PROXY") {
		t.Errorf("Configure = %v, want that the proxy is refused", err)
	}
}

// A response 101 hands the connection over to another protocol. Reading its body
// would last until complete-by.
func TestSwitchedProtocols(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	closed := make(chan error, 2)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(conn)
			if _, err = http.ReadRequest(r); err == nil {
				fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
				_, err = r.ReadByte() // the end, when the other side closes
			}
			closed <- err
			_ = conn.Close()
		}
	}()
	url := "http://" + l.Addr().String()
	for action, want := range map[string]sdk.Outcome{"get": sdk.OutcomeFailed, "post": sdk.OutcomeUnknown} {
		a := open(t, in{})
		reply := invoke(t, a, action, in{"url": url, "expect": []string{"101", "2xx"}, "headers": in{"Connection": "Upgrade", "Upgrade": "x"}})
		if reply.Outcome != want || reply.Code != sdk.CodeUnavailable || !strings.Contains(reply.Message, "101") {
			t.Errorf("%s: %+v", action, reply)
		}
		select {
		case err := <-closed:
			if err == nil {
				t.Errorf("%s: more was sent", action)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: the connection stays open", action)
		}
	}
}

// A secret that the service repeats reaches the engine whole or not at all.
func TestExcerptKeepsSecretsWhole(t *testing.T) {
	const secret = "sw0rd-fish\nsecond line"
	for _, before := range []int{280, 290, 295, 299} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			fmt.Fprint(w, strings.Repeat("x", before)+secret+" is wrong")
		}))
		reply := invoke(t, open(t, in{}), "post", in{"url": s.URL, "form": in{"token": secret}})
		s.Close()
		if strings.Contains(reply.Message, "xsw0r") || !strings.Contains(reply.Message, "xxx") {
			t.Errorf("a part of the secret is left: %q", reply.Message)
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		fmt.Fprint(w, "wrong: "+secret)
	}))
	defer s.Close()
	if reply := invoke(t, open(t, in{}), "post", in{"url": s.URL, "form": in{"token": secret}}); !strings.Contains(reply.Message, secret) {
		t.Errorf("the engine cannot recognise the secret in %q", reply.Message)
	}
}
