package conn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Framed is a [Conn] over any [net.Conn], whose messages a [Framer] cuts. See the
// package documentation for what it guarantees. It has no ping: to learn
// whether the peer is alive, send a message that it answers.
//
// It reads ahead while there is a burst, 64 KiB at a time; an idle connection holds
// a buffer of 512 bytes.
type Framed struct {
	wire   *Wire
	framer Framer
	limit  int
	kind   Type

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

// NewFramed returns nc as a Conn whose messages are cut by f, under the limits of
// o, which may be nil. From now on nc belongs to it: do not read, write, close or
// set deadlines any more. An error names the option that is wrong, and leaves nc
// alone.
//
// nc may be a [crypto/tls.Conn], or anything with a method NetConn() net.Conn that
// returns the connection below: that is what a cut closes first, since closing TLS
// may wait for the network. Where that is a [Wire]'s Tap the Wire is used, so that
// every byte counts as a sign of life; otherwise only decrypted bytes do.
func NewFramed(nc net.Conn, f Framer, o *FramedOptions) (*Framed, error) {
	if nc == nil {
		return nil, errors.New("conn: no net.Conn to frame")
	}
	if err := validateFramer(f); err != nil {
		return nil, err
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	options := o.withDefaults()
	c := &Framed{framer: f, limit: int(options.ReadLimit), kind: options.Type, nc: nc, writeSlot: make(chan struct{}, 1)}
	w := c.join()
	w.setLimits(options.Limits)
	c.source.wire = w
	c.in = bufio.NewReaderSize(&c.source, frameSize)
	c.wire = w
	return c, nil
}

// join returns the Wire under nc, or puts one there, and has the source read nc.
func (c *Framed) join() *Wire {
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

func validateFramer(f Framer) error {
	if f == nil {
		return errors.New("conn: no Framer")
	}
	if v, ok := f.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

// Read implements [Conn]. It allocates nothing if the message fits into buf. If
// not, it grows a new buffer as data comes in, and takes no length from the wire
// on trust.
//
// The errors that a caller may look for are [TooBigError], [ProtocolError],
// [SlowMessageError], [io.EOF] (the peer hung up between messages),
// [io.ErrUnexpectedEOF] (inside one) and [net.ErrClosed]. Only one goroutine may
// read.
func (c *Framed) Read(buf []byte) (Message, error) { return c.read(buf, nil) }

// ReadBuffer implements [Transport]. The size is always 0. The errors are those of
// Read.
func (c *Framed) ReadBuffer(buffer func(size int) []byte) (Message, error) {
	return c.read(nil, buffer)
}

// read is Read, or ReadBuffer if buffer is not nil.
func (c *Framed) read(buf []byte, buffer func(size int) []byte) (Message, error) {
	if c.wire.ended() != nil || !c.wire.reads.begin() {
		return Message{}, c.wire.notReading(c.source.beforeBlock)
	}
	s := &c.source
	s.begun = len(s.win) > 0 || c.in.Buffered() > 0
	var data []byte
	var err error
	if buffer != nil {
		if _, err = c.in.Peek(1); err == nil {
			buf = buffer(0)
		}
	}
	if err == nil {
		data, err = c.framer.ReadFrame(c.in, buf[:0], c.limit)
	}
	if err != nil || len(data) > c.limit || s.ended() != nil {
		err = c.wire.end(c.reason(err))
	}
	s.finish(false)
	c.wire.reads.end()
	if err != nil {
		return Message{}, &lostError{"read", err}
	}
	return Message{Type: c.kind, Data: data}, nil
}

// reason returns what an error of the framer means. err is nil if the framer accepted a
// message that is too large, or in which the stream ended.
func (c *Framed) reason(err error) error {
	var big *TooBigError
	var protocol *ProtocolError
	end := c.source.ended()
	switch {
	case c.wire.cut.Load():
		return net.ErrClosed
	case end == io.EOF && c.source.begun:
		return io.ErrUnexpectedEOF
	case end == io.EOF:
		return errHungUp
	case end != nil:
		return end
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

// Silence implements [Transport].
func (c *Framed) Silence() time.Duration {
	return clock() - time.Duration(c.wire.heard.Load())
}

// BeforeBlock implements [Transport].
func (c *Framed) BeforeBlock(f func()) bool {
	c.source.beforeBlock = f
	return true
}

// Close implements [Conn]. A stream has no place for a code and a reason: they are
// ignored. When the message under way is written Close ends our direction
// (CloseWrite, which [net.TCPConn] and [crypto/tls.Conn] have), so that the peer
// still gets all that was written, and waits for the peer to end its own. A nil
// error means that it has. Messages that come in meanwhile are
// thrown away, but for one that a Read is waiting for. The wait ends with ctx, and has no other
// limit.
//
// If nc has no CloseWrite, or ctx has ended, it is CloseNow.
func (c *Framed) Close(ctx context.Context, _ int, _ string) error {
	if err := c.wire.beginClose(context.Cause(ctx)); err != nil {
		_ = c.CloseNow()
		return &lostError{"close", err}
	}
	defer c.wire.reads.done()
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { c.wire.Cut(); close(cut) })
	err := c.closeHandshake()
	if !stop() {
		<-cut
		err = context.Cause(ctx)
	}
	_ = c.CloseNow()
	if err != nil {
		return &lostError{"close", err}
	}
	return nil
}

// CloseWrite implements [HalfCloser], if nc has a CloseWrite. It waits for the
// message under way.
func (c *Framed) CloseWrite() error {
	if err := c.endWriting(); err != nil {
		return &lostError{"close write", err}
	}
	return nil
}

// endWriting waits for the message under way and ends our direction.
func (c *Framed) endWriting() error {
	half := c.halfCloser()
	if half == nil {
		return fmt.Errorf("%T: %w", c.nc, errors.ErrUnsupported)
	}
	c.writeSlot <- struct{}{}
	defer func() { <-c.writeSlot }()
	return half.CloseWrite()
}

// closeHandshake closes our direction and waits until the peer closes its own. It ends when
// the connection is cut.
func (c *Framed) closeHandshake() error {
	switch err := c.endWriting(); {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err != nil:
		return err
	}
	c.wire.reads.claim()
	switch err := c.source.drain(); {
	case err == io.EOF:
		return nil
	case c.wire.cut.Load():
		return net.ErrClosed
	default:
		return err
	}
}

type halfCloser interface{ CloseWrite() error }

// halfCloser returns the connection that can close our direction, or nil.
func (c *Framed) halfCloser() halfCloser {
	nc := c.nc
	if t, ok := nc.(*tap); ok {
		nc = t.Conn
	}
	half, _ := nc.(halfCloser)
	return half
}

// CloseNow implements [Conn]. The error is always nil.
func (c *Framed) CloseNow() error {
	c.wire.closing.Store(true)
	c.wire.end(net.ErrClosed)
	c.wire.Cut() // first: the layer above may wait for the network
	if c.layer != nil {
		_ = c.layer.Close()
	}
	c.wire.writing.stop()
	c.wire.message.stop()
	return nil
}
