package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
)

// Plain TCP with a length before each message, and a bufio.Reader: it does not redial.
var tcpPeers = []*peer{{name: "tcp", protocol: framedTCP, open: openTCP}}

type tcpClient struct {
	conn   net.Conn
	out    []byte
	reader sync.WaitGroup
}

func openTCP(ctx context.Context, t *target) (client, error) {
	dial := new(net.Dialer).DialContext
	if t.tls != nil {
		dial = (&tls.Dialer{Config: t.tls}).DialContext
	}
	conn, err := dial(ctx, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	c := &tcpClient{conn: conn}
	c.reader.Go(func() { t.isDown(c.read(t.onMessage)) }) // Close waits for it
	t.isUp()
	return c, nil
}

func (c *tcpClient) read(onMessage func([]byte)) error {
	r, head, buf := bufio.NewReader(c.conn), make([]byte, 4), []byte(nil)
	for ; ; onMessage(buf) {
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint32(head))
		buf = slices.Grow(buf[:0], n)[:n]
		if _, err := io.ReadFull(r, buf); err != nil {
			return err
		}
	}
}

func (c *tcpClient) Send(p []byte) error {
	c.out = append(binary.BigEndian.AppendUint32(c.out[:0], uint32(len(p))), p...)
	_, err := c.conn.Write(c.out)
	return err
}

func (c *tcpClient) Close() { _ = c.conn.Close(); c.reader.Wait() }
