package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/chromium"
)

// peer is a page that has the object peer, and the server that it speaks with.
type peer struct {
	*chromium.Page
	t    *testing.T
	meet chan *websocket.Conn // connections that were accepted
	hold chan struct{}        // while it is open, handshakes at /slow are not answered
	gone chan struct{}        // has a value for each handshake at /slow that the browser gave up
}

const peerPage = `<!doctype html><title>peer</title><script src="/wasm_exec.js"></script><script>
const go = new Go();
WebAssembly.instantiateStreaming(fetch("/peer.wasm"), go.importObject).then(r => go.run(r.instance));
</script>`

// built builds the program of the page once. It returns that, and the script of the go tool that
// starts it.
var built = sync.OnceValues(func() (files [2][]byte, err error) {
	dir, err := os.MkdirTemp("", "redial-peer")
	if err != nil {
		return files, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "peer.wasm")
	build := exec.Command("go", "build", "-o", path, "./peer")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		return files, fmt.Errorf("%w: %s", err, out)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return files, err
	}
	if files[0], err = os.ReadFile(path); err == nil {
		files[1], err = os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	}
	return files, err
})

// open opens the page.
func open(t *testing.T) *peer {
	b := chromium.Start(t)
	files, err := built()
	require.NoError(t, err)
	p := &peer{t: t, meet: make(chan *websocket.Conn, 10), hold: make(chan struct{}), gone: make(chan struct{}, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, peerPage) })
	mux.HandleFunc("/peer.wasm", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/wasm")
		w.Write(files[0])
	})
	mux.HandleFunc("/wasm_exec.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		w.Write(files[1])
	})
	mux.HandleFunc("/refused", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			p.gone <- struct{}{}
		case <-p.hold:
		}
	})
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		if ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"b"}}); err == nil {
			ws.SetReadLimit(-1)
			p.meet <- ws
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(p.hold) })
	p.Page = b.Open(t, s.URL)
	p.Wait(t, "window.peer")
	return p
}

// dial opens a connection with options that are written in JavaScript, and returns the server's
// end.
func (p *peer) dial(options string) *websocket.Conn {
	p.t.Helper()
	require.Equal(p.t, "", p.word(`peer.open("ws://" + location.host + "/ws", `+options+`)`))
	ws := <-p.meet
	p.t.Cleanup(func() { ws.CloseNow() })
	return ws
}

// word evaluates an expression that is an error as a word.
func (p *peer) word(expression string) (s string) {
	p.t.Helper()
	p.Eval(p.t, expression, &s)
	return s
}

// read returns the next message as the page gets it, and the error as a word.
func (p *peer) read() (text string, size int, err string) {
	p.t.Helper()
	var m struct {
		Text, Error string
		Size        int
	}
	p.Eval(p.t, "peer.read()", &m)
	return m.Text, m.Size, m.Error
}

// code returns the code of the close frame by which the page ends ws, -1 if there is none.
func (p *peer) code(ws *websocket.Conn) (websocket.StatusCode, string) {
	ctx, cancel := context.WithTimeout(p.t.Context(), chromium.Limit)
	defer cancel()
	for {
		if _, _, err := ws.Read(ctx); err != nil {
			frame := websocket.CloseError{Code: websocket.CloseStatus(err)}
			if text := err.Error(); strings.Contains(text, "reason = ") {
				frame.Reason = text[strings.Index(text, "reason = ")+len("reason = "):]
			}
			return frame.Code, frame.Reason
		}
	}
}

func (p *peer) send(ws *websocket.Conn, text string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), chromium.Limit)
	defer cancel()
	require.NoError(p.t, ws.Write(ctx, websocket.MessageText, []byte(text)))
}

func TestWhatCameBeforeACloseFrameIsReadBeforeIt(t *testing.T) {
	p := open(t)
	for _, code := range []websocket.StatusCode{1000, 1001, 1008, 1011, 1012, 1013, 3000, 4999} {
		ws := p.dial("{}")
		for i := range 20 {
			p.send(ws, fmt.Sprint(i))
		}
		require.NoError(t, ws.Close(code, "because"))
		p.Wait(t, "peer.hungUp()")
		for i := range 20 {
			text, _, err := p.read()
			require.Equal(t, [2]string{fmt.Sprint(i), ""}, [2]string{text, err}, "code %d", code)
		}
		for range 2 {
			_, _, err := p.read()
			require.Equal(t, fmt.Sprintf("code %d because", code), err)
		}
		require.Equal(t, fmt.Sprintf("not written: code %d because", code), p.word(`peer.write("late")`))
	}
}

func TestThePageClosesWithACode(t *testing.T) {
	p := open(t)
	for code, want := range map[int]websocket.StatusCode{1000: 1000, 3001: 3001, 4999: 4999, 1001: 4001, 1009: 4009, 1012: 4012} {
		ws := p.dial("{}")
		got := make(chan websocket.StatusCode, 1)
		go func() { // <-got waits for it
			code, _ := p.code(ws)
			got <- code
		}()
		require.Equal(t, "", p.word(fmt.Sprintf(`peer.close(%d, "done")`, code)))
		require.Equal(t, want, <-got)
		_, _, err := p.read()
		require.Equal(t, "closed", err)
		require.Equal(t, "not written: closed", p.word(`peer.write("late")`))
	}
	p.dial("{}")
	require.Contains(t, p.word(`peer.close(1005, "")`), "cannot be sent")
	_, _, err := p.read()
	require.Equal(t, "closed", err, "it is closed all the same")
}

func TestACutConnectionSendsNoCode(t *testing.T) {
	p := open(t)
	ws := p.dial("{}")
	p.send(ws, "unread")
	require.Equal(t, "", p.word("peer.cut()"))
	code, _ := p.code(ws)
	require.Equal(t, websocket.StatusNoStatusRcvd, code)
	_, _, err := p.read()
	require.Equal(t, "closed", err)
	require.Equal(t, "", p.word("peer.cut()"), "again")
}

func TestAPeerThatIsKilledHungUp(t *testing.T) {
	p := open(t)
	ws := p.dial("{}")
	p.send(ws, "last")
	ws.CloseNow()
	text, _, _ := p.read()
	require.Equal(t, "last", text)
	_, _, err := p.read()
	require.Equal(t, "hung up", err)
	require.Contains(t, p.word(`peer.close(1000, "")`), "hung up", "that is why nobody answers")
}

func TestAMessageThatIsTooLargeEndsTheConnection(t *testing.T) {
	p := open(t)
	for _, c := range []struct {
		options string
		limit   int
		kinds   []websocket.MessageType
	}{
		{"{}", 16 << 20, []websocket.MessageType{websocket.MessageBinary}},
		{"{limit: 1000}", 1000, []websocket.MessageType{websocket.MessageText, websocket.MessageBinary}},
	} {
		for _, kind := range c.kinds {
			ws := p.dial(c.options)
			require.NoError(t, ws.Write(t.Context(), kind, make([]byte, c.limit)))
			_, size, err := p.read()
			require.Equal(t, c.limit, size, err)
			require.NoError(t, ws.Write(t.Context(), kind, make([]byte, c.limit+1)))
			_, _, err = p.read()
			require.Equal(t, "too big", err)
			code, _ := p.code(ws)
			require.EqualValues(t, 4009, code)
		}
	}
	ws := p.dial("{limit: 1000}")
	require.NoError(t, ws.Write(t.Context(), websocket.MessageText, []byte(strings.Repeat("ü", 501))))
	_, _, err := p.read()
	require.Equal(t, "too big", err, "bytes count, not characters")
}

func TestMessagesThatNobodyReadsHaveALimit(t *testing.T) {
	p := open(t)
	ws := p.dial("{limit: 1000}") // so 2000 bytes may wait, and a message counts 64 more than it has
	for i := range 10 {
		p.send(ws, fmt.Sprintf("%d%s", i, strings.Repeat(".", 435)))
	}
	code, _ := p.code(ws)
	require.EqualValues(t, 4008, code)
	for i := range 4 {
		text, size, err := p.read()
		require.Equal(t, "", err)
		require.True(t, strings.HasPrefix(text, fmt.Sprint(i)) && size == 436, text)
	}
	_, _, err := p.read()
	require.Equal(t, "unread", err)
}

func TestAWriteWaitsForTheBrowser(t *testing.T) {
	p := open(t)
	p.dial("{write: 1}") // the server does not read
	var end struct {
		Written int
		Error   string
	}
	p.Eval(t, "peer.flood(100)", &end)
	require.Equal(t, "not written: slow", end.Error)
	require.Less(t, end.Written, 100)
	t.Log("written, in MiB: ", end.Written)
	_, _, err := p.read()
	require.Equal(t, "slow", err)

	ws := p.dial("{}")
	p.Eval(t, "void (window.flooded = peer.flood(20))", nil)
	n := 0
	for ; n < 20; n++ {
		_, data, err := ws.Read(t.Context())
		require.NoError(t, err)
		require.Len(t, data, 1<<20)
	}
	p.Eval(t, "window.flooded", &end)
	require.Equal(t, 20, end.Written, end.Error)
}

func TestATextThatIsNotUTF8IsNotSent(t *testing.T) {
	p := open(t)
	ws := p.dial("{}")
	require.Equal(t, "not written: bad message", p.word("peer.raw([0xff])"))
	require.Equal(t, "", p.word(`peer.write("é")`))
	_, data, err := ws.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "é", string(data))
}

func TestADialThatIsAbandonedEndsAtTheServerToo(t *testing.T) {
	p := open(t)
	require.Equal(t, "deadline", p.word(`peer.open("ws://" + location.host + "/slow", {timeout: 200})`))
	select {
	case <-p.gone:
	case <-time.After(chromium.Limit):
		t.Fatal("the browser goes on dialing")
	}
}

func TestADialThatIsRefusedFails(t *testing.T) {
	p := open(t)
	require.Equal(t, "hung up", p.word(`peer.open("ws://" + location.host + "/refused", {})`))
	require.NotEmpty(t, p.word(`peer.open("nonsense://x/", {})`))
}

// The browser's own text has the whole URL.
func TestAURLThatTheBrowserRefusesIsNotInTheError(t *testing.T) {
	p := open(t)
	require.Equal(t, "the browser refuses the URL or a subprotocol: SyntaxError", p.word(`peer.open("ws://me:hush@h:99999/?token=hush", {})`))
	require.Equal(t, "the browser refuses the URL or a subprotocol: SyntaxError", p.word(`peer.open("ws://h/", {protocols: ["hush", "hush"]})`))
}

func TestTheSubprotocolIsTheOneThatWasChosen(t *testing.T) {
	p := open(t)
	p.dial(`{protocols: ["a", "b"]}`)
	require.Equal(t, "b", p.word("peer.chosen()"))
}
