package main

import (
	"context"
	"database/sql/driver"
	"net"
	"sync"
	"time"

	"github.com/lib/pq"
)

// connector opens connections with the driver and records the socket of each connection. The
// agent needs the sockets because the driver waits for the server without a limit after a
// protocol error. Only closing the socket ends this wait.
type connector struct {
	config pq.Config

	mu      sync.Mutex // protects the field below
	sockets map[driver.Conn]net.Conn
}

func newConnector(cfg pq.Config) *connector {
	return &connector{config: cfg, sockets: map[driver.Conn]net.Conn{}}
}

// Connect opens a connection and records its socket.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	made, err := pq.NewConnectorConfig(c.config)
	if err != nil {
		return nil, err
	}
	d := &dialer{}
	made.Dialer(d)
	conn, err := made.Connect(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.socket
	// From now on, the driver uses this dialer only to cancel statements. So the dialer need not
	// keep the socket of the connection.
	d.socket = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sockets[conn] = s
	s.forget = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.sockets, conn)
	}
	return conn, nil
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return &pq.Driver{} }

// socket returns the socket of a connection; nil if the connection is closed.
func (c *connector) socket(conn driver.Conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sockets[conn]
}

// dialer opens network connections for the driver, and keeps the latest connection.
type dialer struct {
	mu     sync.Mutex // protects the field below
	socket *socket    // latest network connection; nil = none
}

// socket is a network connection. When it is closed, it calls the function `forget`.
type socket struct {
	net.Conn
	// Removes the connection from connector.sockets. nil = connector.sockets does not contain the
	// connection.
	forget func()
}

// Close calls the function `forget` and closes the network connection.
func (s *socket) Close() error {
	if s.forget != nil {
		s.forget()
	}
	return s.Conn.Close()
}

// DialContext opens a network connection and keeps it in the field `socket`.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{KeepAlive: time.Minute}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.socket = &socket{Conn: conn}
	return d.socket, nil
}

// Dial implements pq.Dialer. The driver uses only DialContext.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout implements pq.Dialer. The driver uses only DialContext.
func (d *dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}
