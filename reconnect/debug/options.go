package debug

import (
	"cmp"
	"net/http"
	"os"
	"path/filepath"
)

// Options are the options of [New]. A nil *Options is fine.
type Options struct {
	// Title is the heading of the page. Default: the name of the program's file.
	Title string

	// Allow reports whether a request may see the page. It must be safe for concurrent use. Default:
	// [Loopback].
	Allow func(r *http.Request) bool

	// Token is a secret that a request must bring, in addition to what Allow demands. Set it where Allow cannot
	// tell who asks: where other users of this machine must not see the page, or behind anything that forwards
	// TCP: see [Loopback]. It should be long and random, such as the result of [crypto/rand.Text].
	//
	// A browser opens the page by a link with ?token=TOKEN once, and gets a cookie derived from the token,
	// which lasts until the browser is closed or the token changes. A program sends the header "Authorization:
	// Bearer TOKEN". The comparison takes constant time. The token is in no page, JSON, error or URL that
	// Listen returns. [Page.Vars] and so expvar do not ask for it. Default: none.
	Token string

	// Endpoint returns the text that is shown instead of the endpoint of a Conn, for one whose path holds a
	// secret. Register calls it. Default: the endpoint as it is.
	Endpoint func(endpoint string) string
}

// withDefaults returns a copy of o with the defaults of Title and Allow.
func (o *Options) withDefaults() *Options {
	var r Options
	if o != nil {
		r = *o
	}
	if r.Allow == nil {
		r.Allow = Loopback
	}
	r.Title = clean(cmp.Or(r.Title, filepath.Base(os.Args[0])))
	return &r
}

// ConnOptions are the options of [Page.Register]. A nil *ConnOptions is fine.
type ConnOptions struct {
	// Subscriptions returns how many subscriptions are wanted and held, as in
	//
	//	func() (wanted, held int) { s := set.Stats(); return s.Wanted, s.Held }
	//
	// with a subscription.Set. It is called whenever the Conn is shown, so it must be quick.
	Subscriptions func() (wanted, held int)
}
