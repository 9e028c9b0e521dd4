package chart

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Picture is a title, a legend and panels.
type Picture struct {
	Name    string   // of its file, without ".svg"
	Title   string   // what is seen
	Note    string   // under what conditions; smaller
	Legend  []Style  // in this order; those with equal names are shown once
	Columns int      // of panels; default 1
	Width   float64  // in points of 1/72 inch; default 720
	Height  float64  // of a row of panels, in points; default 170
	Panels  []*Panel // from left to right, then down
}

// The fixed distances, in points.
const (
	margin   = 8
	between  = 14 // panels
	titleGap = 5  // below title, note and legend
)

// Save writes the picture into a directory as NAME.svg.
func (p *Picture) Save(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, p.Name+".svg"), p.svg(), 0o644); err != nil {
		return fmt.Errorf("save picture %s: %w", p.Name, err)
	}
	return nil
}

// WriteSVG writes it as SVG, with its title as the accessible name.
func (p *Picture) WriteSVG(w io.Writer) error {
	_, err := w.Write(p.svg())
	return err
}

func (p *Picture) columns() int { return max(1, p.Columns) }

func (p *Picture) rows() int { return (len(p.Panels) + p.columns() - 1) / p.columns() }

// size is that of the whole picture.
func (p *Picture) size() (width, height float64) {
	width = cmp.Or(p.Width, 720)
	rows := float64(max(p.rows(), 1))
	return width, 2*margin + p.head(nil, box{right: width - 2*margin}) + rows*p.rowHeight() + (rows-1)*between
}

func (p *Picture) rowHeight() float64 { return cmp.Or(p.Height, 170) }

// head draws what is above the panels at the top of b, unless c is nil, and returns its height.
func (p *Picture) head(c *svg, b box) float64 {
	at := spot{b.left, b.top}
	for _, t := range []struct {
		font
		text string
	}{{titleText, p.Title}, {noteText, p.Note}} {
		for i, line := range wrap(t.font, t.text, b.right-b.left) {
			if i == 0 {
				at.y += titleGap
			}
			if c != nil {
				c.write(t.font, spot{at.x, at.y - titleGap}, 0, 0, line)
			}
			at.y += t.height()
		}
	}
	if rows := flow(p.Legend, b.right-b.left); len(rows) > 0 {
		if c != nil {
			drawLegend(c, box{b.left, at.y, b.right, at.y}, rows)
		}
		at.y += float64(len(rows))*legendRow + titleGap
	}
	return at.y - b.top
}

func (p *Picture) svg() []byte {
	width, height := p.size()
	c := newSVG(p.Title, width, height)
	b := box{margin, margin, width - margin, height - margin}
	b.top += p.head(c, b)
	for i, panel := range p.Panels {
		panel.draw(c, p.diagram(b, i/p.columns(), i%p.columns()))
	}
	return c.end()
}

// diagram is the place in b for the diagram of a panel: in a column all begin at the same X, in a
// row at the same Y, and all have the same width.
func (p *Picture) diagram(b box, row, column int) box {
	lefts, rights := make([]float64, p.columns()), make([]float64, p.columns())
	for i, panel := range p.Panels {
		j := i % p.columns()
		lefts[j], rights[j] = max(lefts[j], panel.left()), max(rights[j], panel.right())
	}
	wide := b.right - b.left + between
	for j := range lefts {
		wide -= lefts[j] + rights[j] + between
	}
	wide /= float64(p.columns())
	left := b.left + lefts[column]
	for j := range column {
		left += lefts[j] + wide + rights[j] + between
	}
	above, below := 0.0, 0.0
	for i, panel := range p.Panels {
		if i/p.columns() == row {
			above, below = max(above, newHeading(panel, wide).height()), max(below, panel.below())
		}
	}
	top := b.top + float64(row)*(p.rowHeight()+between)
	return box{left, top + above + headingGap, left + wide, top + p.rowHeight() - below}
}
