//go:build !js

package site

import (
	"embed"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/examples/venue"
)

//go:embed static
var static embed.FS

// policy permits what is from here, and the program. Nothing is from elsewhere.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; " +
	"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Away is for how long a venue is away after POST /trouble/away.
const Away = 10 * time.Second

// site serves the page and its venue.
type site struct {
	program *Program
	venue   *venue.Venue
}

// New returns a handler that serves the page, the feed of v, and its tokens. A POST of the page
// to /trouble/ makes v misbehave. The caller closes v.
func New(p *Program, v *venue.Venue) http.Handler {
	s := &site{p, v}
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // it is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /page.wasm", s.wasm)
	mux.HandleFunc("GET /wasm_exec.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Write(p.Script)
	})
	mux.HandleFunc("GET /token", v.Token)
	mux.Handle("GET /feed", v)
	mux.HandleFunc("POST /trouble/{what}", s.trouble)
	guarded := http.NewCrossOriginProtection().Handler(mux) // no other page makes trouble
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		guarded.ServeHTTP(w, r)
	})
}

// wasm serves the program, compressed if the browser takes that.
func (s *site) wasm(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/wasm")
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(s.program.GZIP)
		return
	}
	w.Write(s.program.WASM)
}

// trouble makes the venue misbehave.
func (s *site) trouble(w http.ResponseWriter, r *http.Request) {
	switch r.PathValue("what") {
	case "cut":
		s.venue.Cut()
	case "restart":
		s.venue.Shut(websocket.StatusServiceRestart, "back in a moment")
	case "away":
		s.venue.SetDoor(venue.Busy)
		s.venue.Cut()
		time.AfterFunc(Away, func() { s.venue.SetDoor(venue.Open) })
	case "mute":
		s.venue.Mute()
	case "skip":
		s.venue.Skip()
	case "shout":
		s.venue.Shout(17 << 20) // a message of 16 MiB is the largest that a Conn takes by default
	default:
		http.NotFound(w, r)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
