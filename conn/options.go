package conn

import (
	"fmt"
	"math"
	"time"
)

// WebSocketOptions are the limits of a [WebSocket]. The zero value, and nil, have
// the defaults.
type WebSocketOptions struct {
	// ReadLimit is the size of the largest message that is read, after
	// decompression. A larger one ends the connection with a [TooBigError], and so
	// does one whose compressed form is larger than twice the limit and 64 KiB.
	// Negative is an error: there is no way to have no limit but to name a
	// large one. Default 16 MiB; in bytes.
	ReadLimit int64

	// WriteTimeout is how long a message may take to be written, counted from
	// its turn when several goroutines write. Then the connection is cut with
	// a [StuckError]. Not used on js, where writing never waits. Default 10 s;
	// negative: off.
	WriteTimeout time.Duration

	// MessageTimeout is how long a message, or a control frame, may take to come
	// in, from when Read has its first byte to its last. Then the connection is cut
	// with a [StuckError]. Not used on js, where messages come in whole.
	// Default 60 s; negative: off.
	MessageTimeout time.Duration

	// CheckUTF8 refuses a Text message that is not UTF-8, as RFC 6455, section 8.1,
	// demands: the connection ends with a [ProtocolError] whose code is 1007. Not
	// used on js, where the browser checks. Default: text is not checked.
	CheckUTF8 bool
}

const (
	defaultReadLimit      = 16 << 20
	defaultWriteTimeout   = 10 * time.Second
	defaultMessageTimeout = 60 * time.Second
	maxLimit              = math.MaxInt - 1 // coder/websocket and we add one
)

// Validate returns an error that names the option which is wrong, if one is.
func (o *WebSocketOptions) Validate() error {
	if o != nil && o.ReadLimit < 0 {
		return fmt.Errorf("conn: option ReadLimit is %d: want a size in bytes, or 0 for %d", o.ReadLimit, defaultReadLimit)
	}
	return nil
}

// withDefaults returns a copy in which nothing is zero. It gives what Validate
// refuses its default.
func (o *WebSocketOptions) withDefaults() WebSocketOptions {
	var d WebSocketOptions
	if o != nil {
		d = *o
	}
	if d.ReadLimit <= 0 {
		d.ReadLimit = defaultReadLimit
	}
	d.ReadLimit = min(d.ReadLimit, maxLimit)
	if d.WriteTimeout == 0 {
		d.WriteTimeout = defaultWriteTimeout
	}
	if d.MessageTimeout == 0 {
		d.MessageTimeout = defaultMessageTimeout
	}
	return d
}
