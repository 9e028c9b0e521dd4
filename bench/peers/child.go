package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// childArgument is the hidden argument of a process that this program has started.
const childArgument = "peers-child"

// IsChild reports whether this process was started to be a server or a client of this
// package. If so it must call [ChildMain] and exit with what that returns.
func IsChild() bool { return len(os.Args) == 2 && os.Args[1] == childArgument }

// ChildMain follows orders from standard input and answers on standard output, until
// standard input ends. The parent decides about Ctrl-C.
func ChildMain() int {
	signal.Ignore(os.Interrupt)
	orders := make(chan order)
	go func() { // until the process ends
		for in := json.NewDecoder(os.Stdin); ; {
			var o order
			if in.Decode(&o) != nil {
				os.Exit(0) // the parent is gone, whatever is being done
			}
			orders <- o
		}
	}()
	c, out := new(role), json.NewEncoder(os.Stdout)
	for o := range orders {
		a, err := c.do(context.Background(), o)
		if err != nil {
			a.Err = err.Error()
		}
		if out.Encode(a) != nil {
			return 1
		}
	}
	return 0
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
	Wake      time.Duration // CPU time for one message to each connection
	Resumed   int           // TLS handshakes of a site that resumed a session
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
	_ = together(len(c.held), func(i int) error { c.held[i].Close(); return nil }) // no error comes of it
	c.held, c.watchers = nil, nil
}
