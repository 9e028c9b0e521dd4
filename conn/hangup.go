package conn

// hungUp reports whether the peer has ended or reset the connection at the bottom
// of w. A connection that is no socket may have a HungUp method of its own.
func (w *Wire) hungUp() bool {
	t := w.tap.Load()
	if t == nil {
		return false
	}
	raw, _ := rawConn(t.Conn)
	if own, ok := raw.(interface{ HungUp() bool }); ok {
		return own.HungUp()
	}
	return socketHungUp(raw)
}

// HungUp implements [Transport].
func (c *Framed) HungUp() bool { return c.wire.hungUp() }
