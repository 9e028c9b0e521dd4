package chromium_test

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"github.com/redial-go/redial/bench/interop/chromium"
)

//go:embed testdata/github.css
var gitHubStyle string

// The README of the repository is rendered by the rules of GitHub's style sheet, without what GitHub
// has around it, and with the fonts of this machine. What is above the heading "The whole program" is to
// be seen in a window of 1,280 x 800 without scrolling. README_PICTURE names a file for a picture of it.
func TestReadmeShowsTheProgramOnItsFirstScreen(t *testing.T) {
	const root = "../../.."
	source, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	var article bytes.Buffer
	require.NoError(t, goldmark.New(goldmark.WithExtensions(extension.GFM)).Convert(source, &article))

	m := http.NewServeMux()
	m.Handle("GET /bench/", http.FileServer(http.Dir(root)))
	m.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		const page = "<!doctype html><meta charset=utf-8><link rel=icon href=data:,>" +
			"<style>%s</style><article>%s</article>"
		fmt.Fprintf(w, page, gitHubStyle, &article)
	})
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)

	b := chromium.Start(t)
	p := b.Open(t, s.URL)
	p.Size(t, 1280, 800)
	p.Wait(t, `document.images.length === 1 && document.images[0].complete && document.images[0].naturalWidth > 0`)
	if path := os.Getenv("README_PICTURE"); path != "" {
		p.Screenshot(t, path)
	}
	require.Equal(t, "The whole program", p.Text(t, "h2"))
	var end, beyond float64
	const first = `[...document.querySelectorAll("article > :not(h2, h2 ~ *)")]`
	p.Eval(t, first+`.at(-1).firstElementChild.getBoundingClientRect().bottom`, &end)
	require.LessOrEqual(t, end, 800.0, "the last line of the program")
	p.Eval(t, `Math.max(...`+first+`.map(e => e.scrollWidth - e.clientWidth))`, &beyond)
	require.Zero(t, beyond, "a line is wider than the page")
	require.Empty(t, p.Problems())
}
