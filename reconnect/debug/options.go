package debug

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Options are the options of [New]. A nil *Options is fine.
type Options struct {
	// Title stands at the top of the page, so that the pages of several programs can be told
	// apart. Default: the name of the program's file.
	Title string

	// Allow reports whether a request may see the page. Allow must be safe for concurrent use. To
	// allow more requests than the default does, call [Loopback] in Allow. Default: Loopback.
	Allow func(r *http.Request) bool

	// Describe returns the text that is shown for the error of a dial or a session. Describe runs
	// in the hooks of the Conn (see [reconnect.Trace]), so it must be quick. The text is cut at
	// 200 bytes.
	//
	// The default makes the text from types and codes only, such as "closed by the peer: 1012
	// (service restart)". It does not use texts of a peer or of your functions, because these may
	// hold a secret. To see the whole texts, as a log has them, set Describe to error.Error.
	Describe func(err error) string

	// Endpoint returns the text that is shown, and searched, in place of the endpoint of a Conn.
	// Register calls Endpoint. Set it if a path holds a secret, such as a listen key or a token;
	// then take care of Describe as well, because the errors of package dialer have the path.
	// Default: the endpoint as it is.
	Endpoint func(endpoint string) string

	// Keep is how long a Conn that has ended is still shown. 256 such Conns are shown at most.
	// Default: 10 min. Negative: a Conn that has ended is forgotten at once.
	Keep time.Duration

	// Interval is the time between two updates of a page that is open in a browser. Default:
	// 500 ms. Less than 250 ms counts as 250 ms. Negative: an error.
	Interval time.Duration

	// Streams is how many open pages are updated at a time. A page beyond that says so and tries
	// again. Default: 16. Negative: no page is updated; pages reload every 5 s, which clears a
	// search that was not sent yet and may scroll to the top.
	Streams int
}

const (
	keepDefault     = 10 * time.Minute
	intervalDefault = 500 * time.Millisecond
	intervalLeast   = 250 * time.Millisecond
	streamsDefault  = 16
)

// withDefaults returns a copy of o with the default in the place of each field that is zero.
func (o *Options) withDefaults() (*Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if r.Interval < 0 {
		return nil, fmt.Errorf("debug: Options.Interval: %v is negative", r.Interval)
	}
	if r.Title == "" {
		r.Title = filepath.Base(os.Args[0])
	}
	if r.Allow == nil {
		r.Allow = Loopback
	}
	if r.Endpoint == nil {
		r.Endpoint = func(endpoint string) string { return endpoint }
	}
	if r.Keep == 0 {
		r.Keep = keepDefault
	}
	if r.Interval == 0 {
		r.Interval = intervalDefault
	}
	r.Interval = max(r.Interval, intervalLeast)
	if r.Streams == 0 {
		r.Streams = streamsDefault
	}
	r.Streams = max(r.Streams, 0)
	r.Title = clean(r.Title)
	return &r, nil
}
