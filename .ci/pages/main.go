// Command pages reads pages of documentation from pkgsite, and prints each link that leads nowhere. The arguments are the
// address at which pkgsite listens, and the paths of the pages: go run ./.ci/pages http://127.0.0.1:8080 /github.com/redial-go/redial@v0.1.0/conn
package main

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

const module = "/github.com/redial-go/redial"

func main() {
	s := site{base: os.Args[1], pages: map[string]string{}}
	wrong := 0
	for _, path := range os.Args[2:] {
		for _, w := range s.check(path) {
			fmt.Printf("pages: %s: %s\n", path, w)
			wrong++
		}
	}
	if wrong > 0 {
		os.Exit(1)
	}
	fmt.Printf("%d pages, with no link that leads nowhere\n", len(os.Args)-2)
}

// site has the pages that were read. The page of a path that cannot be read is "".
type site struct {
	base  string
	pages map[string]string
}

// page returns the page at path. It waits up to a minute for a site that does not listen yet.
func (s *site) page(path string) string {
	if text, read := s.pages[path]; read {
		return text
	}
	s.pages[path] = ""
	for range 120 {
		resp, err := http.Get(s.base + path)
		if err != nil {
			time.Sleep(500 * time.Millisecond)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK {
			s.pages[path] = string(body)
		}
		break
	}
	return s.pages[path]
}

var (
	target = regexp.MustCompile(`href="([^"]+)"`)
	code   = regexp.MustCompile(`(?s)<pre.*?</pre>`)
	tag    = regexp.MustCompile(`<[^>]+>`)
	// unresolved finds a link of a doc comment that pkgsite has left in brackets, because there is no such name: [Conn.Foo].
	unresolved = regexp.MustCompile(`[^\w\]]\[\*?[a-z]*\.?[A-Z]\w*(\.\w+)*\]`)
)

// check returns what is wrong with the page at path.
func (s *site) check(path string) (wrong []string) {
	text := s.page(path)
	if text == "" {
		return []string{"it cannot be read"}
	}
	seen := map[string]bool{}
	for _, found := range target.FindAllStringSubmatch(text, -1) {
		to := html.UnescapeString(found[1])
		if !seen[to] && s.leadsNowhere(path, to) {
			wrong = append(wrong, "a link leads nowhere: "+to)
		}
		seen[to] = true
	}
	_, doc, _ := strings.Cut(text, `id="pkg-overview"`)
	for _, name := range unresolved.FindAllString(html.UnescapeString(tag.ReplaceAllString(code.ReplaceAllString(doc, ""), "")), -1) {
		wrong = append(wrong, "no such name: "+strings.TrimSpace(name[1:]))
	}
	return wrong
}

// leadsNowhere reports whether a link from a page leads to a page of the module, or to a place on one, that does not exist.
func (s *site) leadsNowhere(from, to string) bool {
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return true
	case u.Host != "":
		return false
	case u.Path == "":
		u.Path = from
	case !strings.HasPrefix(u.Path, module):
		return false
	}
	text := s.page(u.Path)
	return text == "" || u.Fragment != "" && !strings.Contains(text, `id="`+u.Fragment+`"`)
}
