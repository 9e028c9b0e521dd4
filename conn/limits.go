package conn

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Limits bound one connection. The zero value has the defaults.
type Limits struct {
	// ReadLimit is the size of the largest message that is read, in bytes: of a WebSocket
	// after decompression, of a Framed without its frame. A larger message ends the
	// connection with a [TooBigError]. So does a message whose compressed form is
	// larger than twice the limit and 64 KiB. Negative is an error: to have no limit,
	// set a large one. Default 16 MiB.
	ReadLimit int64

	// WriteTimeout is how long a message may take to be written, counted from its turn
	// when several goroutines write. After that the connection is cut with a
	// [SlowMessageError]. On js only the wait for the browser's buffer counts. Default
	// 10 s; negative: off.
	WriteTimeout time.Duration

	// MessageTimeout is how long a message, or a control frame of a WebSocket, may take
	// to come in, counted from when Read has its first byte (of a Framed: the first that
	// no [Skipper] skips). After that the connection is cut with a [SlowMessageError].
	// Not used on js, where messages come in whole. Default 60 s; negative: off.
	MessageTimeout time.Duration
}

// WebSocketOptions are the options of a [WebSocket]. The zero value, and nil, have the
// defaults.
type WebSocketOptions struct {
	Limits

	// CheckUTF8 refuses a Text message, or the reason of a close frame, that is not UTF-8
	// (RFC 6455, section 8.1): Read returns no byte of it, but a [ProtocolError] with the
	// code 1007; the peer gets a close frame with that code, and the connection ends. A
	// message is checked when all of it has come. Written messages are not checked.
	//
	// The cost is one pass over each Text message: about 0.1 ns a byte for ASCII, and 1 ns
	// for other text. Set it if your program needs UTF-8 and your decoder does not check:
	// encoding/json replaces wrong bytes by U+FFFD. Not used on js, where the browser
	// checks. Default: off; every text and every reason is returned as it came.
	CheckUTF8 bool

	// Redact returns what the text of a [CloseError] shows of the reason that the peer gave; the
	// field Reason stays as it came. Read calls it, at most once for each connection, and it must not
	// wait. A dialer.WebSocket gives it the reason without the secrets of the dial. Default: all of
	// the reason is shown.
	Redact func(reason string) string
}

// FramedOptions are the options of a [Framed]. The zero value, and nil, have the
// defaults.
type FramedOptions struct {
	Limits

	// Type is the type that Read gives to every message. Default Binary.
	Type Type
}

const (
	defaultReadLimit      = 16 << 20
	defaultWriteTimeout   = 10 * time.Second
	defaultMessageTimeout = 60 * time.Second
	maxLimit              = math.MaxInt - 1 // because we add one
)

func (l *Limits) validate() error {
	if l.ReadLimit < 0 {
		return fmt.Errorf("conn: option ReadLimit is %d: want a size in bytes, or 0 for %d", l.ReadLimit, defaultReadLimit)
	}
	return nil
}

// Validate returns an error that names the option which is wrong, if one is.
func (o *WebSocketOptions) Validate() error {
	if o == nil {
		return nil
	}
	return o.Limits.validate()
}

// Validate returns an error that names the option which is wrong, if one is.
func (o *FramedOptions) Validate() error {
	switch {
	case o == nil:
		return nil
	case o.Type > Binary:
		return fmt.Errorf("conn: option Type is %d: want Text or Binary, or 0 for Binary", o.Type)
	}
	return o.Limits.validate()
}

// withDefaults returns a copy in which nothing is zero.
func (l Limits) withDefaults() Limits {
	return Limits{
		ReadLimit:      min(cmp.Or(l.ReadLimit, defaultReadLimit), maxLimit),
		WriteTimeout:   cmp.Or(l.WriteTimeout, defaultWriteTimeout),
		MessageTimeout: cmp.Or(l.MessageTimeout, defaultMessageTimeout),
	}
}

// withDefaults returns a copy of o with the defaults, or the error of Validate.
func (o *WebSocketOptions) withDefaults() (d WebSocketOptions, _ error) {
	if o != nil {
		d = *o
	}
	d.Limits = d.Limits.withDefaults()
	return d, o.Validate()
}

// withDefaults returns a copy of o with the defaults, or the error of Validate.
func (o *FramedOptions) withDefaults() (d FramedOptions, _ error) {
	if o != nil {
		d = *o
	}
	d.Limits, d.Type = d.Limits.withDefaults(), cmp.Or(d.Type, Binary)
	return d, o.Validate()
}
