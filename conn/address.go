package conn

import "net"

// localAddr returns the address of our end, nil if there is no connection.
func (w *Wire) localAddr() net.Addr {
	t := w.tap.Load()
	if t == nil {
		return nil
	}
	return t.LocalAddr()
}

// LocalAddr implements [Transport].
func (c *Framed) LocalAddr() net.Addr { return c.wire.localAddr() }
