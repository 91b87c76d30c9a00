package main

import (
	"context"
	"database/sql/driver"
	"net"
	"sync"
	"time"

	"github.com/lib/pq"
)

// connector makes the driver's connections and knows the socket of each. After a protocol
// error the driver waits for the server without a limit. Only closing the socket ends this
// wait.
type connector struct {
	config pq.Config

	mu      sync.Mutex // protects following field
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
	d.socket = nil // later sockets of this dialer only carry requests to cancel a statement
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

// Driver is part of driver.Connector.
func (c *connector) Driver() driver.Driver { return &pq.Driver{} }

// socket returns the socket of a connection; nil if the connection is closed.
func (c *connector) socket(conn driver.Conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sockets[conn]
}

// dialer keeps the latest socket that it has opened.
type dialer struct {
	mu     sync.Mutex // protects following field
	socket *socket
}

// socket is a network connection that calls forget when it is closed.
type socket struct {
	net.Conn
	forget func()
}

// Close calls forget and closes the connection.
func (s *socket) Close() error {
	if s.forget != nil {
		s.forget()
	}
	return s.Conn.Close()
}

// DialContext opens a TCP connection and keeps its socket.
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

// Dial is part of pq.Dialer. The driver uses DialContext.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout is part of pq.Dialer. The driver uses DialContext.
func (d *dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}
