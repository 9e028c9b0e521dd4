//go:build js

package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/books"
	"github.com/redial-go/redial/examples/venue"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// options are what the address of the page may change. The zero value has the defaults.
type options struct {
	silence time.Duration // for how long the venue may be silent
	wait    time.Duration // each wait before a dial
}

// follow starts to keep a connection to a venue open, whose address is origin and /feed.
func follow(origin string, o options, trace *reconnect.Trace) (*books.Client, error) {
	var policy backoff.Policy // nil is the default
	if o.wait > 0 {
		policy = &backoff.Exponential{Base: o.wait, Cap: o.wait}
	}
	c, err := books.Follow(&dialer.WebSocket{URL: origin + "/feed"}, &reconnect.Options{
		OnSession: func(ctx context.Context, o *reconnect.Opening) error {
			return login(ctx, o, "http"+strings.TrimPrefix(origin, "ws")+"/token")
		},
		Liveness: reconnect.Liveness{Limit: o.silence},
		Run:      reconnect.RunOptions{Policy: policy, Trace: trace},
	})
	if err == nil {
		c.Want(venue.Symbols...)
	}
	return c, err
}

// login gets a token, sends it in the first message, because a page cannot set a header, and waits
// for the welcome.
func login(ctx context.Context, o *reconnect.Opening, from string) error {
	token, err := venue.FetchToken(ctx, from)
	if err != nil {
		return err
	}
	if err := o.Write(venue.Message{Op: "login", Token: token}.Encode()); err != nil {
		return err
	}
	m, err := o.Read()
	if err != nil {
		return err
	}
	if answer, err := venue.Decode(m.Data); err != nil || answer.Type != "welcome" {
		return errors.New("the venue does not welcome us")
	}
	return nil
}
