package conn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
)

// Framed is a [Conn] over any [net.Conn]. It has no ping: to learn whether the peer is alive, send
// a message that it answers.
type Framed struct {
	wired
	framer  Framer
	skipper Skipper // the framer, if it is one; else nil
	limit   int
	kind    Type

	nc        net.Conn      // as it was given; writes go there
	writeSlot chan struct{} // full while a goroutine writes
	layer     *tap          // nc, if there is a raw connection under it; else nil

	source source        // reads nc
	in     *bufio.Reader // reads source
}

var _ interface {
	Conn
	Transport
	HalfCloser
} = (*Framed)(nil)

// NewFramed returns nc as a Conn whose messages f delimits, under the limits of o. From now on nc
// belongs to the Framed. An error names the invalid option, and leaves nc alone.
//
// nc may be a [crypto/tls.Conn], or anything with a method NetConn() net.Conn that returns the
// connection below. CloseNow closes the lowest one first. Unless [Wire.Tap] has made that, only
// decrypted bytes count as signs of life.
func NewFramed(nc net.Conn, f Framer, o *FramedOptions) (*Framed, error) {
	switch {
	case nc == nil:
		return nil, errors.New("conn: no net.Conn to frame")
	case f == nil:
		return nil, errors.New("conn: no Framer")
	}
	if v, ok := f.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, err
		}
	}
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Framed{framer: f, limit: int(options.ReadLimit), kind: options.Type, nc: nc, writeSlot: make(chan struct{}, 1)}
	c.skipper, _ = f.(Skipper)
	c.wire = c.tapped()
	c.wire.join(c, options.Limits)
	c.source.wire = c.wire
	c.in = bufio.NewReaderSize(&c.source, frameSize)
	return c, nil
}

// tapped returns the Wire under nc, or puts one there, and has the source read nc.
func (c *Framed) tapped() *Wire {
	raw, layered := rawConn(c.nc)
	t, tapped := raw.(*tap)
	if !tapped {
		t = new(Wire).Tap(raw).(*tap)
	}
	switch {
	case !layered:
		c.source.body = t
	case tapped:
		c.layer = &tap{Conn: c.nc}
		c.source.body = c.nc
	default: // a tap above TLS, because there is none below
		c.layer = &tap{Conn: c.nc, wire: t.wire}
		c.source.body = c.layer
	}
	return t.wire
}

// Read implements [Conn]. Its errors are those of [WebSocket.Read], without CloseError.
func (c *Framed) Read(buf []byte) (Message, error) {
	return c.ReadBuffer(func(int) []byte { return buf })
}

// ReadBuffer implements [Transport]. The size is always 0.
func (c *Framed) ReadBuffer(buffer func(size int) []byte) (Message, error) {
	if c.wire.ended() != nil || !c.wire.reads.begin() {
		return Message{}, c.wire.notReading(c.source.beforeBlock)
	}
	s := &c.source
	returned := false
	defer func() {
		if !returned {
			c.wire.abandonRead()
		}
	}()
	s.begun = len(s.win) > 0 || c.in.Buffered() > 0
	var data []byte
	err := c.awaitMessage()
	if err == nil {
		data, err = c.framer.ReadFrame(c.in, buffer(0)[:0], c.limit)
	}
	if err != nil || len(data) > c.limit || s.ended() != nil {
		err = c.wire.end(c.reason(err))
	}
	s.finish(false)
	c.wire.reads.end()
	returned = true
	if err != nil {
		return Message{}, &lostError{"read", err}
	}
	return Message{Type: c.kind, Data: data}, nil
}

// awaitMessage waits for the first byte of a message, and discards what a [Skipper] finds before it. Between
// two messages no time counts.
func (c *Framed) awaitMessage() error {
	for {
		_, err := c.in.Peek(1)
		if err != nil || c.skipper == nil {
			return err
		}
		p, _ := c.in.Peek(c.in.Buffered())
		switch n := c.skipper.Skip(p); {
		case n < 0 || n > len(p):
			return fmt.Errorf("%T: Skip returned %d for %d bytes", c.framer, n, len(p))
		case n == 0:
			return nil
		default:
			_, _ = c.in.Discard(n) // has no error: n bytes are buffered
		}
		c.source.finish(len(c.source.win) > 0 || c.in.Buffered() > 0)
	}
}

// reason returns what an error of the framer means. err is nil if the framer accepted a
// message that is too large, or in which the stream ended.
func (c *Framed) reason(err error) error {
	var big *TooBigError
	var protocol *ProtocolError
	cause := c.source.cause(nil)
	switch {
	case cause == io.EOF && c.source.begun:
		return io.ErrUnexpectedEOF
	case cause == io.EOF:
		return errHungUp
	case cause != nil:
		return cause
	case err == nil:
		return &TooBigError{Limit: int64(c.limit)}
	case errors.As(err, &big):
		return big
	case errors.As(err, &protocol):
		return protocol
	}
	return &ProtocolError{Err: err}
}

// frameSize is the size of the bufio.Reader that a [Framer] reads.
const frameSize = 512

var errHungUp = fmt.Errorf("the peer hung up: %w", io.EOF)

// BeforeBlock implements [Transport].
func (c *Framed) BeforeBlock(f func()) bool {
	c.source.beforeBlock = f
	return true
}

// Close implements [Conn]. It ignores the code and the reason. After the message in progress, Close
// ends our direction by CloseWrite, and waits until the peer ends its direction or ctx is done. A
// nil error means that the peer has ended it. Messages that arrive meanwhile are discarded, except
// for one that a Read is waiting for. If nc has no CloseWrite, or ctx is already done, Close is
// CloseNow.
func (c *Framed) Close(ctx context.Context, _ int, _ string) error {
	return c.wire.close(ctx, nil, c.closeHandshake)
}

// CloseWrite implements [HalfCloser], if nc has a CloseWrite. It waits for the message in progress.
func (c *Framed) CloseWrite() error {
	if err := c.endWriting(); err != nil {
		return &lostError{"close write", err}
	}
	return nil
}

// endWriting waits for the message under way and ends our direction.
func (c *Framed) endWriting() error {
	nc := c.nc
	if t, ok := nc.(*tap); ok {
		nc = t.Conn
	}
	half, ok := nc.(HalfCloser)
	if !ok {
		return fmt.Errorf("%T: %w", c.nc, errors.ErrUnsupported)
	}
	c.writeSlot <- struct{}{}
	defer func() { <-c.writeSlot }()
	return half.CloseWrite()
}

// closeHandshake closes our direction and waits until the peer closes its own. It ends when
// the connection is cut.
func (c *Framed) closeHandshake(ctx context.Context) error {
	switch err := c.endWriting(); {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err != nil:
		return err
	}
	if err := c.wire.reads.claim(ctx); err != nil {
		return err
	}
	if err := c.source.drain(); err != io.EOF {
		return c.source.cause(err)
	}
	return nil
}

// CloseNow implements [Conn]. The error is always nil.
func (c *Framed) CloseNow() error {
	c.wire.closeNow()
	return nil
}

func (c *Framed) abort() {
	if c.layer != nil {
		_ = c.layer.Close()
	}
}
