package conn

import (
	"fmt"
	"time"
)

// FramedOptions are the limits of a [Framed]. The zero value, and nil, have the
// defaults.
type FramedOptions struct {
	// ReadLimit is the size of the largest message that is read, without its
	// frame. A larger one ends the connection with a [TooBigError]. Negative is an
	// error: there is no way to have no limit but to name a large one.
	// Default 16 MiB; in bytes.
	ReadLimit int64

	// WriteTimeout is how long a message may take to be written, counted from
	// its turn when several goroutines write. Then the connection is cut with
	// a [StuckError]. Default 10 s; negative: off.
	WriteTimeout time.Duration

	// MessageTimeout is how long a message may take to come in, from when Read has
	// its first byte to its last. Then the connection is cut with a [StuckError].
	// Default 60 s; negative: off.
	MessageTimeout time.Duration

	// Type is what Read says of every message. Default Binary.
	Type Type
}

// Validate returns an error that names the option which is wrong, if one is.
func (o *FramedOptions) Validate() error {
	if o == nil {
		return nil
	}
	if o.Type > Binary {
		return fmt.Errorf("conn: option Type is %d: want Text or Binary, or 0 for Binary", o.Type)
	}
	return o.limits().Validate()
}

// limits are the options that a WebSocket has too.
func (o *FramedOptions) limits() *WebSocketOptions {
	return &WebSocketOptions{ReadLimit: o.ReadLimit, WriteTimeout: o.WriteTimeout, MessageTimeout: o.MessageTimeout}
}

// withDefaults returns a copy in which nothing is zero.
func (o *FramedOptions) withDefaults() FramedOptions {
	var d FramedOptions
	if o != nil {
		d = *o
	}
	l := d.limits().withDefaults()
	d.ReadLimit, d.WriteTimeout, d.MessageTimeout = l.ReadLimit, l.WriteTimeout, l.MessageTimeout
	if d.Type == 0 {
		d.Type = Binary
	}
	return d
}
