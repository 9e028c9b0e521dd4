package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"

	"github.com/redial-go/redial/bench/internal/chart"
)

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"picture": pictureURL,
	"number":  func(n int) string { return chart.Number(float64(n)) },
}).Parse(page))

// writeHTML writes the report as one file that needs no other.
func writeHTML(w io.Writer, o Options, chapters []*Chapter) error {
	missing := 0
	for _, c := range chapters {
		missing += c.Missing
	}
	return pageTemplate.Execute(w, struct {
		Options
		Chapters []*Chapter
		Missing  int
	}{o, chapters, missing})
}

// pictureURL is a picture as an address that has all of it.
func pictureURL(p *chart.Picture) (template.URL, error) {
	var b bytes.Buffer
	if err := p.WriteSVG(&b); err != nil {
		return "", err
	}
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(b.Bytes())), nil // base64 has nothing to be escaped
}
