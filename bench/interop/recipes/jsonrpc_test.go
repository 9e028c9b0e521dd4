//go:build linux

package recipes_test

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"
)

func init() { peers["ethereum"] = serveEthereum }

// node is what an Ethereum node does for eth_subscribe, with package rpc of go-ethereum. An event "lines" has a line of
// standard input.
type node struct {
	mu      sync.Mutex // guards readers
	readers map[rpc.ID]*rpc.Notifier
}

// Lines is eth_subscribe with "lines".
func (n *node) Lines(ctx context.Context) (*rpc.Subscription, error) {
	notifier, ok := rpc.NotifierFromContext(ctx)
	if !ok {
		return nil, rpc.ErrNotificationsUnsupported
	}
	s := notifier.CreateSubscription()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.readers[s.ID] = notifier
	return s, nil
}

func serveEthereum(port string, _ []string) error {
	n := &node{readers: map[rpc.ID]*rpc.Notifier{}}
	s := rpc.NewServer()
	if err := s.RegisterName("eth", n); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- http.ListenAndServe("127.0.0.1:"+port, s.WebsocketHandler([]string{"*"})) }()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		n.mu.Lock()
		for id, notifier := range n.readers {
			_ = notifier.Notify(id, lines.Text()) // an error says that the reader is gone, which is expected
		}
		n.mu.Unlock()
	}
	return <-ended
}

func TestJsonrpc(t *testing.T) {
	s := startPeer(t, "ethereum")
	r := run(t, "jsonrpc", "-url", "ws://"+s.Address, "-events", "lines")
	form := func(line string) string { return `lines "` + line + `"` }
	liveThroughKills(t, s, r, func(n int) { r.await(n, "^snapshot") }, func(lines ...string) { say(t, s, lines...) }, form)
}
