// Command house compares what a reader of the library meets with ceilings, which only fall: how many
// functions in how many files are on each of some ways through a Conn, how many exported names and words of
// documentation there are, how many types and functions of package reconnect use each other in a circle, and
// which structs hold a Conn. Lower a ceiling when you are below it. Lines are printed and not limited,
// because a limit on lines is met by packing them. Run it at the root of the module:
//
//	go run ./.ci/house
//	go run ./.ci/house -walks DIR    # each way as a text, in a directory
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxKnot is how many types and functions may use each other in a circle.
const maxKnot = 13

// holders are the structs that may have a field of type *Conn: the owner of a supervisor, and a
// rotation. None may embed it.
var holders = []string{"keeper", "replacement"}

const path = "github.com/redial-go/redial/reconnect"

var texts = flag.String("walks", "", "a directory for the text of each walk")

func main() {
	flag.Parse()
	p, err := load()
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(2)
	}
	h := p.measure()
	fmt.Printf("files %d, lines %d, knot %d types with %d lines\n", h.files, h.lines, len(h.knot), h.knotLines)
	f, err := readFace()
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(2)
	}
	fmt.Printf("%d public packages, %d exported names, %d words of documentation\n", f.packages, f.names, f.words)
	walks, err := readWalks(*texts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(2)
	}
	for _, w := range walks {
		fmt.Println(w)
	}
	wrong := slices.Concat(h.wrong(), f.wrong(), tooLong(walks))
	for _, w := range wrong {
		fmt.Println("house:", w)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
}

// house has the measured sizes.
type house struct {
	files, lines, knotLines int
	knot                    []string
	holds                   []string // structs with a field of type *Conn
	embeds                  []string
}

// wrong returns each limit that is exceeded.
func (h *house) wrong() (list []string) {
	if len(h.knot) > maxKnot {
		list = append(list, fmt.Sprintf("%d types and functions use each other in a circle, at most %d may: %s",
			len(h.knot), maxKnot, strings.Join(h.knot, " ")))
	}
	for _, name := range h.holds {
		if !slices.Contains(holders, name) {
			list = append(list, name+" has a field of type *Conn")
		}
	}
	for _, name := range h.embeds {
		list = append(list, name+" embeds *Conn")
	}
	return list
}

// source is package reconnect, with its types.
type source struct {
	set   *token.FileSet
	files []*ast.File
	info  *types.Info
	types *types.Package
}

// load parses and checks the package. Its imports are read from the compiler's export data.
func load() (*source, error) {
	list, err := output("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "./reconnect")
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for line := range strings.Lines(list) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[name] = file
	}
	p := &source{set: token.NewFileSet(), info: &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}}
	names, err := filepath.Glob("reconnect/*.go")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(p.set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(p.set, "gc", open)}
	p.types, err = config.Check(path, p.set, p.files, p.info)
	return p, err
}

// span is a declaration: the lines of a type, or of a function or method, which counts for the type
// of its receiver. The exported methods of Conn stand apart: they are the API.
type span struct {
	from, to token.Pos
	name     string
}

func (p *source) measure() *house {
	h := &house{files: len(p.files)}
	var spans []span
	owner := map[types.Object]string{} // the span that defines an object
	size := map[string]int{}
	line := func(at token.Pos) int { return p.set.Position(at).Line }
	for _, f := range p.files {
		h.lines += line(f.FileEnd)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				s := span{d.Pos(), d.End(), funcOwner(d)}
				spans = append(spans, s)
				owner[p.info.Defs[d.Name]] = s.name
				size[s.name] += line(d.End()) - line(d.Pos()) + 1
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					t, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					spans = append(spans, span{t.Pos(), t.End(), t.Name.Name})
					size[t.Name.Name] += line(t.End()) - line(t.Pos()) + 1
					ast.Inspect(t, func(n ast.Node) bool {
						if id, ok := n.(*ast.Ident); ok && p.info.Defs[id] != nil {
							owner[p.info.Defs[id]] = t.Name.Name
						}
						return true
					})
					p.holdsConn(h, t)
				}
			}
		}
	}
	h.knot = largest(p.uses(spans, owner))
	for _, name := range h.knot {
		h.knotLines += size[name]
	}
	return h
}

// funcOwner returns the name for which the lines of a function count.
func funcOwner(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	name := receiver(d)
	if name == "Conn" && d.Name.IsExported() {
		return "Conn(API)"
	}
	return name
}

// receiver returns the name of the type of a method's receiver.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	switch generic := t.(type) {
	case *ast.IndexExpr:
		t = generic.X
	case *ast.IndexListExpr:
		t = generic.X
	}
	return t.(*ast.Ident).Name
}

// holdsConn notes the fields of a struct that are a *Conn.
func (p *source) holdsConn(h *house, t *ast.TypeSpec) {
	s, ok := p.info.Defs[t.Name].Type().Underlying().(*types.Struct)
	if !ok {
		return
	}
	for f := range s.Fields() {
		pointer, ok := f.Type().(*types.Pointer)
		if !ok {
			continue
		}
		named, ok := pointer.Elem().(*types.Named)
		switch {
		case !ok || named.Obj().Name() != "Conn" || named.Obj().Pkg() != p.types:
		case f.Embedded():
			h.embeds = append(h.embeds, t.Name.Name)
		default:
			h.holds = append(h.holds, t.Name.Name)
		}
	}
}

// uses returns which span uses which other.
func (p *source) uses(spans []span, owner map[types.Object]string) map[string]map[string]bool {
	at := func(pos token.Pos) string {
		for _, s := range spans {
			if s.from <= pos && pos < s.to {
				return s.name
			}
		}
		return ""
	}
	uses := map[string]map[string]bool{}
	for id, o := range p.info.Uses {
		switch generic := o.(type) {
		case *types.Func:
			o = generic.Origin()
		case *types.Var:
			o = generic.Origin()
		}
		from, to := at(id.Pos()), owner[o]
		if o.Pkg() != p.types || from == "" || to == "" || from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		uses[from][to] = true
	}
	return uses
}

// largest returns the largest strongly connected component, by Tarjan's algorithm (Depth-first search and
// linear graph algorithms, 1972).
func largest(uses map[string]map[string]bool) (best []string) {
	index, low, open := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack, open[v] = append(stack, v), true
		for w := range uses[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if open[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		i := slices.Index(stack, v)
		component := slices.Clone(stack[i:])
		for _, w := range component {
			open[w] = false
		}
		if stack = stack[:i]; len(component) > len(best) {
			best = component
		}
	}
	for v := range uses {
		if index[v] == 0 {
			visit(v)
		}
	}
	slices.Sort(best)
	return best
}
