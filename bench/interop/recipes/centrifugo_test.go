//go:build linux

package recipes_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/centrifugal/centrifuge"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/internal/server"
)

func init() { peers["centrifuge"] = serveCentrifuge }

// serveCentrifuge is the library of Centrifugo as a server. Its history is in the Redis of the argument, or in its
// memory. A POST of text to /publish is published as a JSON string.
func serveCentrifuge(port string, args []string) error {
	node, err := centrifuge.New(centrifuge.Config{})
	if err != nil {
		return err
	}
	if len(args) > 0 {
		shard, err := centrifuge.NewRedisShard(node, centrifuge.RedisShardConfig{Address: args[0]})
		if err != nil {
			return err
		}
		broker, err := centrifuge.NewRedisBroker(node, centrifuge.RedisBrokerConfig{Shards: []*centrifuge.RedisShard{shard}})
		if err != nil {
			return err
		}
		node.SetBroker(broker)
	}
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return centrifuge.ConnectReply{Credentials: &centrifuge.Credentials{UserID: "me"}}, nil
	})
	node.OnConnect(func(c *centrifuge.Client) {
		c.OnSubscribe(func(_ centrifuge.SubscribeEvent, answer centrifuge.SubscribeCallback) {
			answer(centrifuge.SubscribeReply{Options: centrifuge.SubscribeOptions{EnableRecovery: true}}, nil)
		})
	})
	if err := node.Run(); err != nil {
		return err
	}
	http.Handle("/connection/websocket", centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{}))
	http.HandleFunc("/publish", func(w http.ResponseWriter, r *http.Request) {
		_, err := node.Publish("news", []byte(`"`+r.FormValue("text")+`"`), centrifuge.WithHistory(10_000, time.Hour))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return http.ListenAndServe("127.0.0.1:"+port, nil)
}

func publish(t *testing.T, s *server.Server, lines ...string) {
	for _, line := range lines {
		answer, err := http.PostForm("http://"+s.Address+"/publish", url.Values{"text": {line}})
		require.NoError(t, err)
		said, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode, string(said))
	}
	http.DefaultClient.CloseIdleConnections()
}

// bothCentrifugos runs a test with the recipe, and with a program that does the same by the library of Centrifugo.
func bothCentrifugos(t *testing.T, test func(t *testing.T, run func(url string) *recipe)) {
	for name, parent := range map[string]string{"centrifugo": "../../../examples/recipes", "centrifugego": "."} {
		t.Run(name, func(t *testing.T) {
			test(t, func(url string) *recipe { return runIn(t, parent, name, "-url", url) })
		})
	}
}

// One server is killed three times while the other publishes. Both have their history in Redis.
func TestCentrifugoRecoversWhatWasPublishedWhileItsServerWasKilled(t *testing.T) {
	bothCentrifugos(t, func(t *testing.T, run func(url string) *recipe) {
		redis := server.Redis(t)
		victim, other := startPeer(t, "centrifuge", redis.Address), startPeer(t, "centrifuge", redis.Address)
		r := run("ws://" + victim.Address + "/connection/websocket")
		r.await(1, "^snapshot")
		all := numbered("line", 0, 900)
		for i := range 3 {
			lines := all[i*300 : i*300+300]
			publish(t, other, lines[:100]...)
			victim.Kill()
			publish(t, other, lines[100:200]...)
			victim.Start()
			publish(t, other, lines[200:]...)
			r.await(len(all[:i*300+300]), `^"`)
		}
		lost, doubled := tally(r.matches(`^"`), quoted(all))
		require.Empty(t, lost)
		require.Empty(t, doubled)
		require.Equal(t, quoted(all), r.matches(`^"`), "in order")
		require.Len(t, r.matches("^snapshot"), 1)
	})
}

// The server has its history in its memory.
func TestCentrifugoSaysThatTheServerHasForgottenItsHistory(t *testing.T) {
	bothCentrifugos(t, func(t *testing.T, run func(url string) *recipe) {
		s := startPeer(t, "centrifuge")
		r := run("ws://" + s.Address + "/connection/websocket")
		r.await(1, "^snapshot")
		before, atKill, after := numbered("before", 0, 100), numbered("kill", 0, 100), numbered("after", 0, 100)
		publish(t, s, before...)
		r.await(100, `^"before`)
		publish(t, s, atKill...)
		s.Kill()
		s.Start()
		r.await(2, "^snapshot")
		publish(t, s, after...)
		r.await(100, `^"after`)
		lost, doubled := tally(r.matches(`^"`), quoted(slices.Concat(before, atKill, after)))
		require.Empty(t, doubled)
		for _, line := range lost {
			require.Contains(t, line, "kill")
		}
		require.Len(t, r.matches("^snapshot"), 2)
		t.Logf("%d of the 100 that were published before the kill are lost, and a snapshot was asked for", len(lost))
	})
}

func quoted(lines []string) (list []string) {
	for _, line := range lines {
		list = append(list, `"`+line+`"`)
	}
	return list
}
