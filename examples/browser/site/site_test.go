//go:build !js

package site_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/examples/browser/site"
	"github.com/redial-go/redial/examples/venue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask returns what a page gets for a request.
func ask(t *testing.T, method, path string, header ...string) *httptest.ResponseRecorder {
	v := venue.New(nil)
	defer v.Close()
	h := site.New(&site.Program{WASM: []byte("program"), GZIP: []byte("packed"), Script: []byte("script")}, v)
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestEverythingThatThePageNeedsIsServed(t *testing.T) {
	for path, want := range map[string][2]string{
		"/":             {"text/html; charset=utf-8", `<script src="start.js" defer>`},
		"/start.js":     {"text/javascript; charset=utf-8", "page.wasm"},
		"/draw.js":      {"text/javascript; charset=utf-8", "requestAnimationFrame"},
		"/style.css":    {"text/css; charset=utf-8", "prefers-color-scheme"},
		"/wasm_exec.js": {"text/javascript; charset=utf-8", "script"},
		"/page.wasm":    {"application/wasm", "program"},
		"/token":        {"text/plain; charset=utf-8", ""},
	} {
		w := ask(t, "GET", path)
		require.Equal(t, http.StatusOK, w.Code, path)
		if path != "/token" { // net/http names its type later
			require.Equal(t, want[0], w.Header().Get("Content-Type"), path)
		}
		require.Contains(t, w.Body.String(), want[1], path)
	}
	require.NotEqual(t, ask(t, "GET", "/token").Body.String(), ask(t, "GET", "/token").Body.String())
	require.Equal(t, "packed", ask(t, "GET", "/page.wasm", "Accept-Encoding", "br, gzip").Body.String())
}

func TestThePolicyPermitsNothingFromElsewhere(t *testing.T) {
	for _, path := range []string{"/", "/page.wasm", "/nothing"} {
		policy := ask(t, "GET", path).Header().Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'")
		require.NotContains(t, policy, "unsafe-inline")
		require.NotContains(t, policy, "'unsafe-eval'")
		require.NotContains(t, policy, "http")
	}
	for _, line := range strings.Split(ask(t, "GET", "/").Body.String(), "\n") {
		require.NotContains(t, line, "//", "an address of another host")
		require.NotContains(t, line, "style=", "the policy refuses it")
	}
}

func TestOnlyThePageMakesTrouble(t *testing.T) {
	require.Equal(t, http.StatusNoContent, ask(t, "POST", "/trouble/cut", "Sec-Fetch-Site", "same-origin").Code)
	require.Equal(t, http.StatusForbidden, ask(t, "POST", "/trouble/cut", "Sec-Fetch-Site", "cross-site").Code)
	require.Equal(t, http.StatusNotFound, ask(t, "GET", "/trouble/cut").Code)
	require.Equal(t, http.StatusNotFound, ask(t, "POST", "/trouble/party").Code)
}

func TestBuildSaysWhenThereIsNoGoTool(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := site.Build(context.Background())
	require.ErrorContains(t, err, "built by the go tool, which is not in the PATH")
}

func TestBuildMakesAProgram(t *testing.T) {
	p, err := site.Build(t.Context())
	require.NoError(t, err)
	require.Equal(t, "\x00asm", string(p.WASM[:4]))
	require.True(t, strings.Contains(string(p.Script), "globalThis.Go = class"))
	require.Less(t, len(p.GZIP), len(p.WASM)/2)
	r, err := gzip.NewReader(strings.NewReader(string(p.GZIP)))
	require.NoError(t, err)
	whole, err := io.ReadAll(r)
	require.NoError(t, err)
	require.True(t, bytes.Equal(p.WASM, whole))
	t.Logf("%.1f MB, %.1f MB compressed", float64(len(p.WASM))/1e6, float64(len(p.GZIP))/1e6)
}
