package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"
)

// config holds the arguments of the config {} block in the agent block.
type config struct {
	BaseURL            string            `agent:"base_url,optional" doc:"Base of relative URLs. With it no other host is called."`
	Headers            map[string]string `agent:"headers,optional,sensitive" doc:"Sent with every request."`
	IdempotencyHeader  string            `agent:"idempotency_header,optional" default:"Idempotency-Key" doc:"Header that carries the idempotency key; \"\" = none."`
	ForwardKeyHeader   string            `agent:"forward_key_header,optional" doc:"Header with the key of the call that an undo undoes; \"\" = none."`
	Timeout            time.Duration     `agent:"timeout,optional" default:"0s" doc:"Longest time for one request; 0s = until complete-by."`
	MaxResponseBytes   int               `agent:"max_response_bytes,optional" default:"262144" doc:"Bytes of the longest body that is read, at most 1048576."`
	CAFile             string            `agent:"ca_file,optional" doc:"PEM file of the authorities to trust instead of the system's."`
	CertFile           string            `agent:"cert_file,optional" doc:"PEM file of the client's certificate."`
	KeyFile            string            `agent:"key_file,optional" doc:"PEM file of the client's key."`
	ServerName         string            `agent:"server_name,optional" doc:"Name to expect in the server's certificate."`
	InsecureSkipVerify bool              `agent:"insecure_skip_verify,optional" default:"false" doc:"Accept any server certificate. Only for tests."`
	AllowHosts         []string          `agent:"allow_hosts,optional" doc:"The only hosts to connect to: names, names such as \"*.example.com\", addresses, and ranges such as \"10.1.0.0/16\". Default: all."`
	DenyPrivate        bool              `agent:"deny_private,optional" default:"false" doc:"Refuse to connect to loopback, private, link-local and reserved addresses, except for addresses and ranges in allow_hosts."`

	base *url.URL // parsed BaseURL; nil = no base URL
}

const maxResponseBytes = 1 << 20

// configure checks the config {} block and makes the HTTP client. It returns an error if an
// argument is wrong.
func (h *agent) configure(_ context.Context, c config) error {
	if c.BaseURL != "" {
		u, err := url.Parse(c.BaseURL)
		if err != nil {
			return errors.New("base_url: is not a URL")
		}
		if err := checkURL(u); err != nil {
			return fmt.Errorf("base_url: %w", err)
		}
		c.base = u
	}
	if c.Timeout < 0 {
		return errors.New("timeout: must not be negative")
	}
	if c.MaxResponseBytes < 1 || c.MaxResponseBytes > maxResponseBytes {
		return fmt.Errorf("max_response_bytes: must be between 1 and %d", maxResponseBytes)
	}
	tlsConfig, err := c.tls()
	if err != nil {
		return err
	}
	out, err := newEgress(c.AllowHosts, c.DenyPrivate)
	if err != nil {
		return err
	}
	h.conf = c
	h.client = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			// The agent has proxy variables in its environment only if the argument `env` of the
			// agent block lists them.
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           out.dial,
			TLSClientConfig:       tlsConfig,
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          256,
			MaxIdleConnsPerHost:   64,
			IdleConnTimeout:       60 * time.Second,
			TLSHandshakeTimeout:   15 * time.Second,
			ExpectContinueTimeout: time.Second,
			// A small compressed body can become larger than max_response_bytes when it is
			// decompressed. So the agent does not accept compressed bodies.
			DisableCompression: true,
		},
	}
	return nil
}

func (c config) tls() (*tls.Config, error) {
	t := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         c.ServerName,
		InsecureSkipVerify: c.InsecureSkipVerify, //nolint:gosec // the operator has set this argument
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("ca_file: holds no certificate in PEM form")
		}
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("cert_file and key_file: one needs the other")
	}
	if c.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("cert_file and key_file: %w", err)
		}
		t.Certificates = []tls.Certificate{cert}
	}
	return t, nil
}

// checkURL returns an error if a URL is not an absolute http or https URL, or has a fragment.
// It sends nothing.
func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with http:// or https://")
	case u.Host == "":
		return errors.New("names no host")
	case u.Fragment != "":
		return errors.New("must not have a fragment")
	}
	return nil
}
