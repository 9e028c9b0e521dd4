package reconnect_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// clerk is a server that notes what each connection brings: "3 x 100000" for a
// message of 100000 bytes with the name 3, and "3 cut" for part of one.
type clerk struct {
	mu    sync.Mutex // guards lines
	lines [][]string // for each connection
}

func (k *clerk) serve(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	k.mu.Lock()
	n := len(k.lines)
	k.lines = append(k.lines, []string{})
	k.mu.Unlock()
	c.SetReadLimit(-1)
	for {
		_, r, err := c.Reader(ctx)
		if err != nil {
			return
		}
		data, err := io.ReadAll(r)
		name, _, _ := strings.Cut(string(data), " ")
		line := fmt.Sprintf("%s x %d", name, len(data))
		if err != nil {
			line = name + " cut"
		}
		k.mu.Lock()
		k.lines[n] = append(k.lines[n], line)
		k.mu.Unlock()
	}
}

func (k *clerk) all() [][]string {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([][]string{}, k.lines...)
}

// named is a message of so many bytes that begins with its name.
func named(name string, size int) conn.Message {
	return text(name + " " + strings.Repeat("x", size-len(name)-1))
}

// Promise 6: wherever the connection is cut, the next one begins with a whole message,
// and none is on both.
func TestAMessageIsNeverSplitOverTwoConnections(t *testing.T) {
	for cut := int64(1); cut < 200_100; cut = cut*3/2 + 1 { // in headers, in the first message, between the two, in the second
		k := new(clerk)
		inVenue(t, k.serve, func(t *testing.T, v *venue) {
			o, told := sending(reconnect.WhenDownKeep)
			c := v.ready(t, o)
			v.pipe(t).Cut(conntest.ToServer, cut)
			for _, name := range []string{"1", "2", "3"} {
				require.NoError(t, c.Send(reconnect.Out{Message: named(name, 100_000), Tag: name}))
			}
			time.Sleep(time.Second)
			arrived := make(map[string]int)
			lines := k.all()
			require.Len(t, lines, 2)
			for _, line := range lines[1] {
				require.True(t, strings.HasSuffix(line, " x 100000"), "cut at %d: %v", cut, lines)
			}
			for _, line := range append(lines[0], lines[1]...) {
				if name, whole := strings.CutSuffix(line, " x 100000"); whole {
					arrived[name]++
				}
			}
			require.Len(t, told.all(), 3)
			for _, r := range told.all() {
				name := r.Out.Tag.(string)
				require.LessOrEqual(t, arrived[name], 1, "cut at %d: %v", cut, lines)
				require.Equal(t, r.Session == 2, r.Fate == reconnect.FateWritten && arrived[name] == 1 && contains(lines[1], name), "cut at %d: %s %v of session %d: %v", cut, name, r.Fate, r.Session, lines)
			}
		})
	}
}

func contains(lines []string, name string) bool {
	for _, line := range lines {
		if strings.HasPrefix(line, name+" ") {
			return true
		}
	}
	return false
}

// Promise 6: with a pin the parts of one whole go by one session or not at all.
func TestPartsThatArePinnedDoNotGoByTheNextSession(t *testing.T) {
	k := new(clerk)
	inVenue(t, k.serve, func(t *testing.T, v *venue) {
		o, told := sending(reconnect.WhenDownKeep)
		c := v.ready(t, o)
		v.pipe(t).Window(conntest.ToServer, 1000)
		v.pipe(t).Stall(conntest.ToServer)
		for i := range 5 {
			require.NoError(t, c.Send(reconnect.Out{Message: named(fmt.Sprint(i), 50_000), Session: 1}))
		}
		require.NoError(t, c.Send(reconnect.Out{Message: named("whole", 10)}))
		synctest.Wait()
		v.network.ResetAll(venueAddr)
		time.Sleep(time.Second)
		require.Equal(t, [][]string{{}, {"whole x 10"}}, k.all())
		require.Len(t, told.all(), 6)
		for i, fate := range []reconnect.Fate{reconnect.FateUnknown, reconnect.FateDropped, reconnect.FateDropped, reconnect.FateDropped, reconnect.FateDropped, reconnect.FateWritten} {
			require.Equal(t, fate, told.all()[i].Fate)
		}
	})
}

// Promises 8 and 10: a peer that floods us and reads nothing makes neither a deadlock
// nor a heap: the write timeout cuts, and the bounds hold.
func TestAPeerThatFloodsAndNeverReadsIsCutOff(t *testing.T) {
	flood := conntest.Frame{Head: conntest.Fin | conntest.TextFrame, Payload: make([]byte, 100)}.Bytes()
	inVenue(t, func(ctx context.Context, c *websocket.Conn, r *http.Request) {
		for ctx.Err() == nil && conntest.PipeOf(ctx).Live() {
			conntest.PipeOf(ctx).Inject(conntest.ToClient, flood)
			time.Sleep(time.Millisecond)
		}
	}, func(t *testing.T, v *venue) {
		v.dialer.Conn.WriteTimeout = 5 * time.Second
		o, told := sending(reconnect.WhenDownKeep)
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.Outbox.Messages, o.Outbox.Bytes = 10, 300_000
		c := v.ready(t, o)
		accepted, refused := 0, 0
		for v.now() < 12*time.Second {
			if c.Send(reconnect.Out{Message: named("m", 40_000)}) == nil {
				accepted++
			} else {
				refused++
			}
			require.LessOrEqual(t, c.Stats().Queued, uint64(8), "7 that wait, and the one that is written")
			time.Sleep(100 * time.Millisecond)
		}
		require.Positive(t, refused)
		require.GreaterOrEqual(t, c.Stats().Sessions, uint64(2))
		require.Greater(t, c.Stats().Received, uint64(5000), "reading went on")
		quit(c)
		require.Len(t, told.all(), accepted)
	})
}

// Promise 11: Shutdown drains over real connections that are cut under it.
func TestShutdownDrainsOverWebSocketsThatAreCut(t *testing.T) {
	k := new(clerk)
	inVenue(t, k.serve, func(t *testing.T, v *venue) {
		o, told := sending(reconnect.WhenDownKeep)
		c := v.ready(t, o)
		v.pipe(t).Window(conntest.ToServer, 1000)
		v.pipe(t).Stall(conntest.ToServer)
		for i := range 20 {
			require.NoError(t, c.Send(reconnect.Out{Message: named(fmt.Sprint(i), 10_000), Repeatable: true}))
		}
		shut := shutdown(t.Context(), c)
		time.Sleep(time.Second)
		v.network.ResetAll(venueAddr)
		require.NoError(t, <-shut)
		require.Len(t, told.all(), 20)
		require.Len(t, k.all()[1], 20)
		require.Equal(t, 2, told.all()[0].Tries)
	})
}
