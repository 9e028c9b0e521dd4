package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redial-go/redial/bench/internal/child"
)

// childArgument is the hidden argument of a process that this program has started.
const childArgument = "peers-child"

// IsChild reports whether this process was started to be a server or a client of this
// package. If so it must call [ChildMain] and exit with what that returns.
func IsChild() bool { return child.Is(childArgument) }

// ChildMain follows orders from standard input and answers on standard output, until
// standard input ends.
func ChildMain() int { return child.Main(childArgument, follow) }

func follow(_ struct{}, in io.Reader, out io.Writer) error {
	orders := make(chan order)
	go func() { // until the process ends
		for d := json.NewDecoder(in); ; {
			var o order
			if d.Decode(&o) != nil {
				os.Exit(0) // the parent is gone, whatever is being done
			}
			orders <- o
		}
	}()
	c, answers := new(role), json.NewEncoder(out)
	for {
		a, err := c.do(context.Background(), <-orders)
		if err != nil {
			a.Err = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

// order is what a child is asked to do.
type order struct {
	Do   string
	Site siteSetup // for "site"
	Feed feedOrder // for "feed"
	Job  job       // for what a client does
}

// limit is how long a process may take for an order. A client should notice before that
// its job takes too long, and say more about it.
func (o *order) limit() time.Duration {
	return 30*time.Second + o.Job.Limit + time.Duration(o.Feed.Count)*o.Feed.Every
}

// feedOrder says what the feed sends.
type feedOrder struct {
	Count, Resets int
	Every         time.Duration
}

// answer is what came of an order. An order needs some of it.
type answer struct {
	Err       string
	Addresses map[protocol]string // where a site listens
	Since     map[protocol]int64  // when it began to, in Unix nanoseconds
	Cert      []byte
	CPU       time.Duration
	Took      time.Duration
	Allocs    uint64
	Count     int // of what CPU, Took and Allocs are for
	Bytes     int64
	Stack     int64
	Resident  int64
	Wake      time.Duration    // CPU time for one message to each connection
	Fastest   time.Duration    // round trip
	Late      [2]time.Duration // from the write to the application: the median, and 99 of 100
	Resumed   int              // TLS handshakes of a site that resumed a session
	Seen      []seen
}

// role is a server or a client: what an order does.
type role struct {
	site     *site
	held     []client
	watchers []*watcher
}

func (c *role) do(ctx context.Context, o order) (answer, error) {
	if o.Job.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Job.Limit, fmt.Errorf("not done within %v", o.Job.Limit))
		defer cancel()
	}
	switch o.Do {
	case "site":
		s, err := openSite(o.Site)
		if err != nil {
			return answer{}, err
		}
		c.site = s
		return answer{Addresses: s.addresses, Since: s.since, Cert: s.cert}, nil
	case "usage":
		cpu, err := usage()
		a := answer{CPU: cpu}
		if c.site != nil {
			a.Resumed = int(c.site.resumed.Load())
		}
		return a, err
	case "feed":
		return answer{}, c.site.feed(o.Feed.Count, o.Feed.Resets, o.Feed.Every)
	case "receive":
		return o.Job.receive(ctx)
	case "send":
		return o.Job.send(ctx)
	case "echo":
		return o.Job.echo(ctx)
	case "latency":
		return o.Job.latency(ctx)
	case "machine":
		return o.Job.machine()
	case "redial":
		return o.Job.redial(ctx)
	case "idle":
		return c.idle(ctx, o.Job)
	case "watch":
		return answer{}, c.watch(ctx, o.Job)
	case "seen":
		return answer{Seen: c.seen()}, nil
	case "close":
		c.close()
		return answer{}, nil
	}
	return answer{}, errors.New("there is no order " + o.Do)
}

// close closes what idle and watch have left open.
func (c *role) close() {
	for _, w := range c.watchers {
		c.held = append(c.held, w.client)
	}
	closeAll(c.held)
	c.held, c.watchers = nil, nil
}
