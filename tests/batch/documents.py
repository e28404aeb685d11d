"""Small documents whose every page looks different."""

import io
import random
from pathlib import Path

from PIL import Image, ImageDraw


def pdf(num_pages: int, seed: int = 0, *, drawing: bytes = b"") -> bytes:
    """A PDF whose pages hold a few rectangles, different on every page and for every seed."""
    generator = random.Random(f"{seed}")
    kids = b" ".join(b"%d 0 R" % (3 + 2 * n) for n in range(num_pages))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, num_pages),
    ]
    for number in range(num_pages):
        box = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 140]/Contents %d 0 R>>"
        objects.append(box % (4 + 2 * number))
        content = drawing + b"".join(
            b"%d %d %d %d re f\n" % tuple(generator.randint(1, 90) for _ in range(4))
            for _ in range(3)
        )
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
    return assemble(objects)


def assemble(objects: list[bytes]) -> bytes:
    """A PDF file of numbered objects, the first being the catalog."""
    out, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n"
    return bytes(out + trailer % (len(objects) + 1, start))


def picture(seed: int) -> Image.Image:
    """A small drawing."""
    generator, image = random.Random(f"{seed}"), Image.new("RGB", (96, 64), "white")
    draw = ImageDraw.Draw(image)
    for _ in range(4):
        x, y = generator.randint(0, 80), generator.randint(0, 50)
        draw.rectangle((x, y, x + 9, y + 9), fill="black")
    return image


def image_file(seed: int, suffix: str, num_frames: int = 1) -> bytes:
    """A PNG, JPEG or (of several pages) TIFF file."""
    sink = io.BytesIO()
    frames = [picture(seed * 100 + n) for n in range(num_frames)]
    if suffix == ".tiff":
        frames[0].save(sink, "TIFF", save_all=True, append_images=frames[1:])
    else:
        frames[0].save(sink, "JPEG" if suffix == ".jpg" else "PNG")
    return sink.getvalue()


def mixed_folder(folder: Path, num_pages: int) -> int:
    """Fills a folder with PDFs and images of about so many pages in all; the exact number."""
    generator, done, seed = random.Random(7), 0, 0
    while done < num_pages:
        seed += 1
        kind = generator.choice(["pdf", "pdf", "pdf", "png", "tiff"])
        length = generator.randint(1, 30) if kind == "pdf" else generator.randint(1, 4)
        path = folder / f"part {seed % 3}" / f"file-{seed:03}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "pdf":
            path.write_bytes(pdf(length, seed))
        else:
            length = length if kind == "tiff" else 1
            path.write_bytes(image_file(seed, f".{kind}", length))
        done += length
    return done
