package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/internal/program"
)

func TestMain(m *testing.M) {
	program.Main(m, example.Main)
}

// serving starts a server, and returns it with its address.
func serving(t *testing.T, args ...string) (*program.Program, string) {
	p := program.Start(t, append([]string{"serve", "-addr", "127.0.0.1:0"}, args...)...)
	return p, p.Find(`listening on (\S+)\n`)[1]
}

func dial(t *testing.T, addr string) *websocket.Conn {
	ws, _, err := websocket.Dial(t.Context(), "ws://"+addr+"/ws?notice", nil)
	require.NoError(t, err)
	t.Cleanup(func() { ws.CloseNow() })
	return ws
}

func TestAServerThatIsInterruptedClosesItsConnectionsAndEndsWell(t *testing.T) {
	t.Parallel()
	p, addr := serving(t, "-lead", "-1s", "-window", "4s")
	ws := dial(t, addr)
	require.NoError(t, ws.Write(t.Context(), websocket.MessageText, []byte("hello")))
	_, data, err := ws.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hello", string(data))
	p.Interrupt()
	_, data, err = ws.Read(t.Context())
	require.NoError(t, err)
	_, ok := parseLeave(string(data))
	require.True(t, ok, "the notice comes first, not %q", data)
	_, _, err = ws.Read(t.Context())
	require.Equal(t, websocket.StatusServiceRestart, websocket.CloseStatus(err), "%v", err)
	require.Zero(t, p.ExitCode())
	require.Contains(t, p.String(), "drained: 1 connections were closed, and 0 had left before\n")
}

func TestAServerIsReadyUntilItDrains(t *testing.T) {
	p, addr := serving(t, "-lead", "1m")
	ready := func() int { return status("http://" + addr + "/ready") }
	require.Equal(t, http.StatusOK, ready())
	p.Interrupt()
	p.Await("draining 0 connections over 1m0s, after 1m0s\n")
	for range 1000 { // the line comes just before
		if ready() != http.StatusOK {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.Equal(t, http.StatusServiceUnavailable, ready())
	p.Kill()
}

func TestTheDemonstrationLosesNothing(t *testing.T) {
	for _, args := range []string{"", "-notice"} {
		t.Run("demo "+args, func(t *testing.T) {
			t.Parallel()
			p := program.Start(t, append([]string{"demo", "-n", "30", "-window", "1s", "-lead", "500ms"}, strings.Fields(args)...)...)
			require.Zero(t, p.ExitCode())
			for _, text := range []string{
				"30 clients are connected\n",
				" connections over 1s, after 500ms\n",
				"drained: ",
				"; unacknowledged: 0\n",
			} {
				require.Contains(t, p.String(), text)
			}
		})
	}
}

func TestTheDemonstrationEndsWhenInterrupted(t *testing.T) {
	p := program.Start(t, "demo", "-n", "5", "-lead", "1m")
	p.Find(`draining \d connections`) // one may be ready that is not added yet
	p.Interrupt()
	require.Equal(t, 1, p.ExitCode())
	require.Contains(t, p.String(), "drain demo: interrupted\n")
}

func TestTheChartHasABarForEach100ms(t *testing.T) {
	var text strings.Builder
	chart(&text, []int{0, 8, 4, 1, 0, 0, 0, 0, 0, 0, 2})
	require.Equal(t, `dials since SIGTERM, a bar for each 100 ms; the highest is 8:
  | █▄▁      | 13
  |▂         | 2
`, text.String())
}

func TestMistakesAreClearErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"":                                     {2, "usage: drain serve"},
		"sing":                                 {2, `drain: there is no command "sing"`},
		"serve -x":                             {2, "flag provided but not defined: -x"},
		"demo extra":                           {2, `drain demo: unexpected arguments ["extra"]`},
		"demo -n 0":                            {2, "drain demo: -n: want 1 to 4000 clients, not 0\n"},
		"serve -addr nowhere":                  {1, "drain serve: listen tcp: "},
		"serve -addr " + taken.Addr().String(): {1, "drain serve: listen tcp " + taken.Addr().String() + ": bind: "},
		"help":                                 {0, "usage: drain serve"},
		"demo -h":                              {0, "how many clients"},
	} {
		var out, notes strings.Builder
		require.Equal(t, want.code, example.Run(context.Background(), strings.Fields(args), command.Streams{Out: &out, Notes: &notes}), args)
		said, silent := &notes, &out
		if want.code == 0 {
			said, silent = silent, said
		}
		require.Contains(t, said.String(), want.text, args)
		require.Empty(t, silent.String(), args)
	}
}

// status returns the status of a page, 0 if no server answers.
func status(url string) int {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	answer, err := client.Get(url)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}
