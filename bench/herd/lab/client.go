package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// aliases are short names of the clients of package fleet.
var aliases = map[string]string{
	"full":         "full 0.5-30s",
	"fixed":        "fixed 1s",
	"exponential":  "exponential 1-30s",
	"grpc":         "gRPC",
	"grpc-2s":      "gRPC, 2s",
	"nats":         "nats.go",
	"nats-tls":     "nats.go TLS",
	"centrifuge":   "centrifuge-go",
	"decorrelated": "decorrelated 1-30s",
	"stubborn":     "stubborn-io",
}

// Clients returns the names that [FindClient] knows, sorted: those without a blank or
// a comma, which are handy in a list.
func Clients() []string {
	var names []string
	for alias := range aliases {
		names = append(names, alias)
	}
	for _, c := range fleet.Clients() {
		if !strings.ContainsAny(c.Name, " ,") && !slices.ContainsFunc(names, func(a string) bool { return aliases[a] == c.Name }) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// FindClient returns a client of package fleet by its name there or a short one,
// which then is its Name.
func FindClient(name string) (fleet.Client, error) {
	long, ok := aliases[name]
	if !ok {
		long = name
	}
	c, ok := fleet.Named(long)
	if !ok {
		return c, fmt.Errorf("find policy %q: there are %s", name, strings.Join(Clients(), ", "))
	}
	c.Name = name
	return c, nil
}

// newDialer returns how a client dials: as the library does, or with one limit on the
// whole try. Of several URLs it knows all, or the first stands for a balancer that hands
// each connection to one of them at random.
func newDialer(c fleet.Client, urls []string, known bool, from netip.Addr) reconnect.Dialer {
	d := &dialer.WebSocket{TCP: dialer.TCPOptions{LocalAddr: from}}
	switch {
	case len(urls) == 1:
		d.URL = urls[0]
	case known:
		d.URLs = urls
	default:
		d.URL, d.DialContext = urls[0], balancer(urls, from)
	}
	if !c.Whole {
		return d
	}
	d.ConnectTimeout, d.HandshakeTimeout = time.Hour, time.Hour
	return whole{d}
}

// balancer returns a dial to the host of one of the URLs at random, whatever its address.
func balancer(urls []string, from netip.Addr) func(ctx context.Context, network, _ string) (net.Conn, error) {
	var d net.Dialer
	if from.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: from.AsSlice()}
	}
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		host := strings.TrimSuffix(strings.TrimPrefix(urls[rand.IntN(len(urls))], "ws://"), "/")
		return d.DialContext(ctx, network, host)
	}
}

// whole is a dialer with no limits of its own: the supervisor ends the try.
type whole struct{ *dialer.WebSocket }

// DialTimeout is the one limit, Connect.
func (whole) DialTimeout(t backoff.Attempt) time.Duration {
	if t.Connect <= 0 {
		return backoff.DefaultConnect
	}
	return t.Connect
}
