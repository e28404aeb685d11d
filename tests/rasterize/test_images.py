"""Image files: kinds, frames, turns, depths, sizes, and damage."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import ExifTags, Image, TiffImagePlugin

from ocria.errors import InputError
from ocria.rasterize import PageFailed, PageImage, open_document

OPTIONS = {"name": "scan.bin", "password": None, "max_pixels": 4_000_000}


def read(data, target, **options):
    with open_document(data, **{**OPTIONS, **options}) as document:
        return list(document.pages(range(1, document.source.num_pages + 1), target))


def encode(image: Image.Image, kind: str, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def corner(width: int = 60, height: int = 40, mode: str = "RGB") -> Image.Image:
    """White, the upper left quarter black."""
    image = Image.new("L", (width, height), 255)
    image.paste(0, (0, 0, width // 2, height // 2))
    return image.convert(mode)


def png_of_any_size(width: int, height: int, rows: bytes) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        check = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", rows), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize(
    ("kind", "media_type", "options"),
    [
        ("PNG", "image/png", {}),
        ("JPEG", "image/jpeg", {"quality": 95}),
        ("TIFF", "image/tiff", {}),
        ("WEBP", "image/webp", {"lossless": True}),
        ("BMP", "image/bmp", {}),
        ("GIF", "image/gif", {}),
    ],
)
def test_kinds_are_told_by_their_bytes(target, kind, media_type, options):
    data = encode(corner(), kind, **options)
    with open_document(data, **OPTIONS) as document:
        assert document.source.media_type == media_type
        (page,) = document.pages([1], target)
    assert page.rgb.shape == (40, 60, 3)
    assert page.rgb[2:16, 2:26].mean() < 8 and page.rgb[24:].mean() > 247
    # A BMP file always carries a resolution, in whole pixels a metre.
    assert (page.width_pt, page.height_pt) == pytest.approx((45, 30), rel=1e-3)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "LA", "CMYK", "I;16", "I", "F"])
def test_modes(target, mode):
    if mode in ("I;16", "I"):
        levels = np.asarray(corner(mode="L")).astype(np.uint16 if mode == "I;16" else np.int32)
        image = Image.fromarray(levels * 257)
    else:
        image = corner(mode=mode)
    (page,) = read(encode(image, "TIFF"), target)
    assert page.rgb[:20, :30].max() == 0
    assert page.rgb[20:].min() == 255


def test_transparency_is_white_paper(target):
    image = Image.new("RGBA", (30, 1200), (0, 0, 0, 0))
    image.paste((0, 0, 0, 255), (0, 0, 30, 100))
    (page,) = read(encode(image, "PNG"), target)
    assert page.rgb[:100].max() == 0
    assert page.rgb[100:].min() == 255


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF"])
@pytest.mark.parametrize(
    ("orientation", "turn", "undo"),
    [
        (1, 0, None),
        (2, 0, Image.Transpose.FLIP_LEFT_RIGHT),
        (3, 180, Image.Transpose.ROTATE_180),
        (6, 90, Image.Transpose.ROTATE_90),
        (8, 270, Image.Transpose.ROTATE_270),
    ],
)
def test_exif_turn_is_undone(target, kind, orientation, turn, undo):
    """`undo` is how a camera held that way stored the upright picture."""
    stored = corner(64, 32)
    if undo is not None:
        stored = stored.transpose(undo)
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    (page,) = read(encode(stored, kind, exif=exif, dpi=(144, 144)), target)
    assert page.rotation == turn
    assert page.rgb.shape == (32, 64, 3)
    assert page.rgb[2:14, 2:30].mean() < 8 and page.rgb[18:].mean() > 247
    assert (page.width_pt, page.height_pt) == pytest.approx((32, 16), rel=1e-3)


def test_unequal_resolution_turns_with_the_page(target):
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    (page,) = read(encode(corner(40, 80), "TIFF", exif=exif, dpi=(100, 200)), target)
    assert page.rgb.shape == (40, 80, 3)
    assert (page.width_pt, page.height_pt) == pytest.approx((80 * 72 / 200, 40 * 72 / 100))


@pytest.mark.parametrize("dpi", [(1, 1), (0, 0), (100_000, 100_000)])
def test_unbelievable_resolution_counts_as_96(target, dpi):
    (page,) = read(encode(corner(96, 48), "TIFF", dpi=dpi), target)
    assert (page.width_pt, page.height_pt) == (72, 36)


def test_tiff_frames_are_pages_and_thumbnails_are_not(target):
    frames = [corner(40 + 10 * index, 30) for index in range(4)]
    thumbnail = TiffImagePlugin.ImageFileDirectory_v2()
    thumbnail[254] = 1
    file = io.BytesIO()
    with TiffImagePlugin.AppendingTiffWriter(file) as writer:
        for index, frame in enumerate(frames):
            frame.save(writer, "TIFF", tiffinfo=thumbnail if index == 2 else {})
            writer.newFrame()
    pages = read(file.getvalue(), target)
    assert [page.rgb.shape[1] for page in pages] == [40, 50, 70]
    assert [page.number for page in pages] == [1, 2, 3]


def test_animation_is_one_page(target):
    frames = [corner(), Image.new("RGB", (60, 40))]
    data = encode(frames[0], "GIF", save_all=True, append_images=frames[1:])
    (page,) = read(data, target)
    assert page.rgb[24:].min() == 255


def test_one_pixel(target):
    (page,) = read(encode(Image.new("L", (1, 1), 7), "PNG"), target)
    assert page.rgb.tolist() == [[[7, 7, 7]]]


def test_20000_px_square_is_refused_before_decoding(target):
    """The header promises 400 megapixels, the data would decode to 50 MB of bits."""
    packer = zlib.compressobj(1)
    rows = b"".join(packer.compress(bytes(2501)) for _ in range(20_000)) + packer.flush()
    (page,) = read(png_of_any_size(20_000, 20_000, rows), target, max_pixels=200_000_000)
    assert isinstance(page, PageFailed)
    assert page.code == "pixel_limit"
    assert "20000 x 20000" in page.message and "scale the image down" in page.message
    assert (page.width_pt, page.height_pt) == (15_000, 15_000)
    assert page.seconds < 1


def test_limit_is_per_frame(target):
    small, large = corner(100, 100), corner(200, 200)
    data = encode(small, "TIFF", save_all=True, append_images=[large, small])
    pages = read(data, target, max_pixels=20_000)
    assert [type(page) for page in pages] == [PageImage, PageFailed, PageImage]
    assert pages[1].number == 2


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP", "GIF"])
def test_cut_short(target, kind):
    noise = np.random.default_rng(0).integers(0, 256, (200, 200, 3), np.uint8)
    data = encode(Image.fromarray(noise), kind)
    try:
        (page,) = read(data[: len(data) // 2], target)
    except InputError as error:
        # The directory of a TIFF lies at the end of the file.
        assert error.hint
        return
    assert isinstance(page, PageFailed)
    assert page.code == "page_broken" and "save it again" in page.message


@pytest.mark.parametrize(
    "head", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0", b"GIF89a", b"BM"]
)
def test_a_magic_number_alone_is_no_image(target, head):
    with pytest.raises(InputError, match=r"scan\.bin") as caught:
        read(head + bytes(20), target)
    assert caught.value.hint
