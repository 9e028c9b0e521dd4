//go:build linux

package recipes_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

func init() { peers["nats"] = serveNats }

// serveNats is nats-server, which asks its clients for a sign of life every 200 ms.
func serveNats(port string, _ []string) error {
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	s, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: number, NoSigs: true, PingInterval: 200 * time.Millisecond, MaxPingsOut: 50})
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return errors.New("shut down")
}

func TestNats(t *testing.T) {
	for _, name := range []string{"nats", "natsgo"} {
		t.Run(name, func(t *testing.T) {
			s := startPeer(t, "nats")
			r := run(t, name, "-url", "nats://"+s.Address)
			send := func(lines ...string) {
				c, err := nats.Connect("nats://" + s.Address)
				require.NoError(t, err)
				defer c.Close()
				for _, line := range lines {
					require.NoError(t, c.Publish("news", []byte(line)))
				}
				require.NoError(t, c.Flush())
			}
			same := func(line string) string { return line }
			liveThroughKills(t, s, r, func(n int) { r.await(n, "^snapshot") }, send, same)
			require.Len(t, r.matches("^snapshot"), 4, "one for each process of the server")
		})
	}
}
