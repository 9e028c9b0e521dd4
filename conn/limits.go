package conn

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Limits are the limits of one connection. The zero value has the defaults.
type Limits struct {
	// ReadLimit is the size in bytes of the largest message that is read: of a WebSocket after
	// decompression, of a Framed without its frame. A larger message, or one whose compressed form
	// is larger than twice the limit plus 64 KiB, ends the connection with a [TooBigError].
	// Negative is an error: for no limit, set a large one. Default: 16 MiB.
	ReadLimit int64

	// WriteTimeout limits the time in which the network must take 32 KiB of a message, or what is
	// left of it. So a message of any size is written as long as the peer takes 3.3 kB/s or more. If
	// several goroutines write, they take turns, each with the full time. After that the connection
	// is closed with a [SlowMessageError]. On js only the wait for the browser's buffer counts.
	// Default: 10 s; negative means none.
	WriteTimeout time.Duration

	// MessageTimeout limits the time in which 32 KiB of a message, or what is left of it, must
	// arrive, the first time from its first byte (of a Framed: the first that no [Skipper] skips).
	// A control frame of a WebSocket counts as a message, or as bytes of the one in progress. After
	// that the connection is closed with a [SlowMessageError]. Not used on js, where messages arrive
	// complete. Default: 60 s, which are 550 B/s; negative means none.
	MessageTimeout time.Duration
}

// WebSocketOptions are the options of a [WebSocket]. The zero value, and nil, have the defaults.
type WebSocketOptions struct {
	Limits

	// CheckUTF8 rejects a Text message, or the reason of a close frame, that is not UTF-8 (RFC
	// 6455, section 8.1): Read returns no byte of it but a [ProtocolError]. Written messages are
	// not checked.
	//
	// Set it if your decoder does not check: encoding/json replaces invalid bytes by U+FFFD. Not
	// used on js, where the browser checks.
	CheckUTF8 bool

	// Redact returns what the text of a [CloseError] shows of the peer's reason. Read calls it at
	// most once per connection, and it must not wait. A dialer.WebSocket passes it the reason
	// without the secrets of the dial. Default: the whole reason.
	Redact func(reason string) string
}

// FramedOptions are the options of a [Framed]. The zero value, and nil, have the defaults.
type FramedOptions struct {
	Limits

	// Type is the type of every message that Read returns. Default: Binary.
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

// Validate returns an error naming any invalid option.
func (o *WebSocketOptions) Validate() error {
	if o == nil {
		return nil
	}
	return o.Limits.validate()
}

// Validate returns an error naming any invalid option.
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
