package main

import (
	"net"
	"sync"
)

// door is a listener that knows its connections, so that all can be reset.
type door struct {
	net.Listener

	mu   sync.Mutex // guards what follows
	open map[*visitor]struct{}
}

func listen(address string) (*door, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &door{Listener: l, open: map[*visitor]struct{}{}}, nil
}

// Accept returns the next connection, a *visitor.
func (d *door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &visitor{TCPConn: c.(*net.TCPConn), door: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[v] = struct{}{}
	return v, nil
}

// reset resets all connections that are open, and returns how many those were.
func (d *door) reset() int {
	d.mu.Lock()
	var visitors []*visitor
	for v := range d.open {
		visitors = append(visitors, v)
	}
	d.mu.Unlock()
	for _, v := range visitors {
		_ = v.SetLinger(0) // so that Close sends a reset
		_ = v.Close()
	}
	return len(visitors)
}

// visitor is a connection that its door knows.
type visitor struct {
	*net.TCPConn
	door *door
}

func (v *visitor) Close() error {
	v.door.mu.Lock()
	delete(v.door.open, v)
	v.door.mu.Unlock()
	return v.TCPConn.Close()
}
