// Command image executes the steps of a container file for each architecture, and writes an OCI
// archive; or it writes the root of one architecture to a directory.
//
// It needs no container runtime and no network. Its output depends only on its input: entries
// have a fixed order, owner and time. It supports the steps that an image from scratch needs,
// and rejects all others, so that the result equals that of any other builder.
//
//	image -version 1.2.3 -epoch 0 -out dist/image.tar
//	image -arch amd64 -root /tmp/root
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

type options struct {
	containerfile, context, version, architectures, out, root string
	epoch                                                     int64
}

func main() {
	var o options
	flag.StringVar(&o.containerfile, "f", "deploy/Containerfile", "the container file")
	flag.StringVar(&o.context, "context", ".", "directory that it copies from")
	flag.StringVar(&o.version, "version", "dev", "version of the image")
	flag.StringVar(&o.architectures, "arch", "amd64,arm64", "architectures")
	flag.Int64Var(&o.epoch, "epoch", 0, "time of everything, in seconds")
	flag.StringVar(&o.out, "out", "", "OCI archive to write")
	flag.StringVar(&o.root, "root", "", "directory to write the root of the first architecture into")
	flag.Parse()
	if err := o.build(); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func (o *options) build() error {
	text, err := os.ReadFile(o.containerfile)
	if err != nil {
		return fmt.Errorf("read container file: %w", err)
	}
	at := time.Unix(o.epoch, 0).UTC()
	archive := newArchive(at, o.version)
	for _, architecture := range strings.Split(o.architectures, ",") {
		image, err := parse(string(text), map[string]string{"TARGETARCH": architecture})
		if err != nil {
			return err
		}
		if o.root != "" {
			return image.writeRoot(o.context, o.root)
		}
		if err := archive.add(image, o.context, architecture); err != nil {
			return err
		}
	}
	if o.out == "" {
		return fmt.Errorf("nothing to write: set -out or -root")
	}
	return archive.write(o.out)
}
