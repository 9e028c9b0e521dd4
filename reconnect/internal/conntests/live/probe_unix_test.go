//go:build unix

package live_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// stoppedEnv makes TestAProcessThatWasStoppedCutsNobody the process that is stopped: it has the
// URL of the server.
const stoppedEnv = "REDIAL_TEST_STOPPED_URL"

// checked is how many connections the process has.
const checked = 20

// Promise 8: a process that is stopped between its pings and their answers, which have come when it
// goes on, cuts nobody.
func TestAProcessThatWasStoppedCutsNobody(t *testing.T) {
	if url := os.Getenv(stoppedEnv); url != "" {
		checkAndBeStopped(t, url)
		return
	}
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	var pinged sync.WaitGroup
	pinged.Add(checked)
	answer := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{OnPingReceived: func(context.Context, []byte) bool {
			select {
			case <-answer:
			default:
				pinged.Done() // it sends the first one
				<-answer
			}
			return true
		}})
		if err == nil {
			conntest.Discard(context.Background(), c, r)
		}
	}))
	defer server.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), stoppedEnv+"=ws"+strings.TrimPrefix(server.URL, "http"))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	pinged.Wait()
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	close(answer)
	time.Sleep(3 * time.Second) // more than a third of the limit, so that each timer is late
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.Equal(t, "sessions: 20", lines.Text())
	for lines.Scan() {
	}
	require.NoError(t, cmd.Wait())
}

// checkAndBeStopped opens the connections, checks them, and prints how many sessions they have had
// when all have been probed again.
func checkAndBeStopped(t *testing.T, url string) {
	var conns []*reconnect.Conn
	for range checked {
		c, err := reconnect.New(&dialer.WebSocket{URL: url}, &reconnect.Options{Liveness: reconnect.Liveness{Limit: 6 * time.Second}})
		require.NoError(t, err)
		defer scene.CloseAndWait(c)
		require.NoError(t, c.AwaitReady(t.Context()))
		conns = append(conns, c)
	}
	for _, c := range conns {
		c.Check()
	}
	sessions := uint64(0)
	for _, c := range conns {
		for c.Stats().Probes < 3 && c.Stats().Sessions < 2 {
			time.Sleep(10 * time.Millisecond)
		}
		sessions += c.Stats().Sessions
	}
	fmt.Println("sessions:", sessions)
}
