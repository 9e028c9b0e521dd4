package main

import (
	"context"
	"crypto/tls"
	"net/http"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
)

// peer is one way to use one library.
type peer struct {
	name     string
	protocol protocol
	redials  bool // by itself, or in a loop that is part of the adapter
	open     func(ctx context.Context, t *target) (client, error)

	// share makes what clients may have in common, such as a dialer, for target.shared.
	// It is nil if they have nothing in common, or always the same.
	share func(t *target) any

	takeover bool // open can agree to target.takeover
}

// protocol is what a peer speaks with the server.
type protocol string

const (
	webSocket protocol = "ws"
	framedTCP protocol = "tcp" // a length of 4 bytes, the most significant first, and the message
	natsCore  protocol = "nats"
	mqtt5     protocol = "mqtt"
)

// client is an open connection, as its adapter shows it.
type client interface {
	// Send sends one message, which must not change while the client is open. It is not
	// called by two goroutines at once. It returns an error if the message cannot be
	// sent now.
	Send(p []byte) error

	// Close ends the connection, and waits until its reader has ended.
	Close()
}

// target says what to connect to and what to do with what comes. All functions may be
// nil but onMessage.
type target struct {
	address  string // host:port
	tls      *tls.Config
	http     *http.Client  // with tls, for all dials over HTTP of one program; nil without tls
	up, down string        // topics, for protocols with a broker
	wait     time.Duration // between two dials; 0: as the library has it
	shared   any           // what peer.share has made; nil: nothing is shared
	oneByOne bool          // the client sends a message only when the last one is answered
	takeover bool          // messages are compressed with context takeover (RFC 7692, section 7.1.1)

	// onMessage is called with each message, in the goroutine that reads. The data is
	// valid until it returns.
	onMessage func(p []byte)

	// onGap is called where the reader learns in its own stream, between two messages,
	// that some may be missing.
	onGap func(err error)

	onUp   func()          // a connection is ready: the first, and each after it
	onDown func(err error) // the library has noticed that a connection is lost
}

func (t *target) isUp() {
	if t.onUp != nil {
		t.onUp()
	}
}

func (t *target) isDown(err error) {
	if t.onDown != nil {
		t.onDown(err)
	}
}

// isLost is for adapters whose reader notices the loss.
func (t *target) isLost(err error) {
	t.isDown(err)
	t.gap(err)
}

func (t *target) gap(err error) {
	if t.onGap != nil {
		t.onGap(err)
	}
}

// url returns the address with a scheme, the second one under TLS.
func (t *target) url(plain, secure string) string {
	if t.tls != nil {
		plain = secure
	}
	return plain + "://" + t.address
}

// all are the peers; the first is the base of all ratios.
var all = slices.Concat(coderPeers, gorillaPeers, gwsPeers, tcpPeers, redialPeers, redialRunPeers, redialFramedPeers,
	loopPeers, recwsPeers, natsPeers, autopahoPeers)

// twin is the name of the base when it is measured a second time.
const twin = "(A/A)"

// Names returns the names of the peers.
func Names() []string { return pick.Names(all, nameOf) }

func nameOf(p *peer) string { return p.name }

// findPeer returns the peer of a name. A twin is the base.
func findPeer(name string) (*peer, error) {
	if name == all[0].name+" "+twin {
		return all[0], nil
	}
	return pick.One("peer", name, all, nameOf)
}
