"""PDF pages: size, turn, selection, and everything that can be wrong with a file."""

import hashlib
import os
import threading
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ocria.errors import InputError, PasswordError
from ocria.rasterize import PageFailed, PageImage, open_document

OPTIONS = {"password": None, "max_pixels": 10_000_000}
A4 = (595, 842, b"")


def read(source, target, **options):
    with open_document(source, name="x.pdf", **{**OPTIONS, **options}) as document:
        return list(document.pages(range(1, document.source.num_pages + 1), target))


def black_quarter(page: PageImage) -> str:
    """Where the black quarter of the upright page lies."""
    height, width, _ = page.rgb.shape
    halves = {"top": slice(0, height // 2), "bottom": slice(height // 2, None)}
    sides = {"left": slice(0, width // 2), "right": slice(width // 2, None)}
    means = {f"{v} {h}": page.rgb[halves[v], sides[h]].mean() for v in halves for h in sides}
    dark = min(means, key=means.__getitem__)
    assert means[dark] < 20
    assert all(mean > 235 for place, mean in means.items() if place != dark)
    return dark


def test_source_and_page(make_pdf, target, tmp_path):
    path = tmp_path / "report.pdf"
    path.write_bytes(make_pdf(A4))
    with open_document(path, name="report.pdf", **OPTIONS) as document:
        assert document.source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        assert document.source.media_type == "application/pdf"
        assert (document.source.name, document.source.num_pages) == ("report.pdf", 1)
        (page,) = document.pages([1], target)
    assert page.rgb.shape == (*target.fit(1754, 1240), 3)
    assert page.rgb.dtype == "uint8" and page.rgb.flags.c_contiguous
    assert (page.number, page.width_pt, page.height_pt, page.rotation) == (1, 595, 842, 0)
    assert black_quarter(page) == "top left"
    assert page.seconds > 0


@pytest.mark.parametrize(
    ("turn", "place"),
    [(90, "top right"), (180, "bottom right"), (270, "bottom left"), (-90, "bottom left")],
)
def test_rotation_is_undone(make_pdf, target, turn, place):
    (page,) = read(make_pdf((600, 800, b"/Rotate %d" % turn)), target)
    assert page.rotation == turn % 360
    expected = (600, 800) if turn == 180 else (800, 600)
    assert (page.width_pt, page.height_pt) == expected
    assert (page.rgb.shape[1] > page.rgb.shape[0]) == (turn != 180)
    assert black_quarter(page) == place


def test_dpi_renders_at_that_resolution(make_pdf, target):
    (page,) = read(make_pdf((720, 360, b"")), replace(target, dpi=101))
    assert page.rgb.shape == (505, 1010, 3)
    assert black_quarter(page) == "top left"


def test_pages_come_in_the_order_asked_for_and_again(make_pdf, target):
    sizes = [(200 + 40 * index, 300, b"") for index in range(7)]
    with open_document(make_pdf(*sizes), name="x", **OPTIONS, workers=3) as document:
        for numbers in ([1, 2, 3, 4, 5, 6, 7], [6, 2, 7], [4]):
            pages = list(document.pages(numbers, target))
            assert [page.number for page in pages] == numbers
            assert [page.width_pt for page in pages] == [160 + 40 * n for n in numbers]


def test_same_bytes_from_any_number_of_workers(make_pdf, target):
    pdf = make_pdf(*[(300 + index, 400, b"") for index in range(5)])
    one, three = (read(pdf, target, workers=count) for count in (1, 3))
    assert [p.rgb.tobytes() for p in one] == [p.rgb.tobytes() for p in three]


def test_an_abandoned_iteration_does_not_leak_into_the_next(make_pdf, target):
    pdf = make_pdf(*[(300 + index, 400, b"") for index in range(5)])
    with open_document(pdf, name="x", **OPTIONS) as document:
        first = document.pages([1, 2, 3], target)
        assert next(first).number == 1
        second = document.pages([5, 4], target)
        assert list(first) == []
        assert [page.width_pt for page in second] == [304, 303]


def test_form_fields_are_drawn(form_pdf, target):
    (page,) = read(form_pdf, replace(target, dpi=72))
    assert page.rgb[75:95, 30:190].mean() < 20
    assert page.rgb[120:, :].mean() > 235


def test_200_inch_page_is_rendered_at_the_models_size(make_pdf, target):
    (page,) = read(make_pdf((14_400, 14_400, b"")), target)
    assert page.rgb.shape == (512, 512, 3)
    assert page.width_pt == 14_400


def test_200_inch_page_at_a_fixed_resolution_is_refused(make_pdf, target):
    (page,) = read(make_pdf((14_400, 14_400, b"")), replace(target, dpi=300))
    assert isinstance(page, PageFailed)
    assert page.code == "pixel_limit"
    assert "60000 x 60000" in page.message and "--dpi" in page.message


def test_a_strip_is_refused(make_pdf, target):
    (page,) = read(make_pdf((10, 5000, b"")), target)
    assert (page.code, page.number) == ("pixel_limit", 1)


def test_a_refused_page_has_its_size(make_pdf, target):
    (page,) = read(make_pdf((10, 5000, b"/Rotate 90")), target)
    assert (page.width_pt, page.height_pt, page.rotation) == (5000, 10, 90)


@pytest.mark.parametrize(
    ("boxes", "size", "place"),
    [
        # Black is the upper left quarter of the page, 400 x 300.
        (b"/CropBox[0 150 400 300]", (400, 150), None),
        (b"/CropBox[-50 0 900 900]", (400, 300), "top left"),
        (b"/CropBox[5000 5000 6000 6000]", (400, 300), "top left"),
        (b"/CropBox[400 0 900 300]", (400, 300), "top left"),
        (b"/CropBox[5000 5000 6000 6000]/Rotate 90", (300, 400), "top right"),
    ],
)
def test_the_crop_box_is_clipped_to_the_page(make_pdf, target, boxes, size, place):
    (page,) = read(make_pdf((400, 300, boxes)), target)
    assert (page.width_pt, page.height_pt) == size
    if place:
        assert black_quarter(page) == place


def test_a_user_unit_is_applied(make_pdf, target):
    pages = read(make_pdf((400, 300, b"/UserUnit 2.5"), (400, 300, b"")), replace(target, dpi=72))
    assert [(page.width_pt, page.height_pt) for page in pages] == [(1000, 750), (400, 300)]
    assert [page.rgb.shape for page in pages] == [(750, 1000, 3), (300, 400, 3)]
    assert black_quarter(pages[0]) == "top left"


@pytest.mark.parametrize("unit", [b"0", b"-3", b"1e99", b"/Ten", b"[2]"])
def test_a_senseless_user_unit_is_none(make_pdf, target, unit):
    (page,) = read(make_pdf((400, 300, b"/UserUnit " + unit)), target)
    assert (page.width_pt, page.height_pt) == (400, 300)


def test_a_user_unit_within_an_object_stream(target):
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 300]/UserUnit 2>>"
    packed = zlib.compress(b"3 0 " + page)
    head = b"<</Type/ObjStm/N 1/First 4/Filter/FlateDecode/Length %d>>" % len(packed)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        head + b"stream\n" + packed + b"\nendstream",
    ]
    pdf = b"%PDF-1.7\n"
    rows = [b"\0\0\0\0\xff"]
    for number, body in zip((1, 2, 4), objects, strict=True):
        rows.append(b"\1%b\0" % len(pdf).to_bytes(3, "big"))
        pdf += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    rows.insert(3, b"\2\0\0\4\0")
    rows.append(b"\1%b\0" % len(pdf).to_bytes(3, "big"))
    table = b"".join(rows)
    xref = b"5 0 obj\n<</Type/XRef/Size 6/W[1 3 1]/Root 1 0 R/Length %d>>stream\n%s\nendstream\n"
    tail = b"endobj\nstartxref\n%d\n%%%%EOF\n" % len(pdf)
    (page,) = read(pdf + xref % (len(table), table) + tail, target)
    assert (page.width_pt, page.height_pt) == (800, 600)


def test_a_broken_page_costs_only_itself(make_pdf, target):
    pages = read(make_pdf(A4, b"(no page)", A4), target)
    assert [type(page) for page in pages] == [PageImage, PageFailed, PageImage]
    assert (pages[1].number, pages[1].code) == (2, "page_broken")
    assert "repair" in pages[1].message


def test_junk_before_the_header_and_a_wrong_suffix(make_pdf, target, tmp_path):
    path = tmp_path / "scan.dat"
    path.write_bytes(b"HTTP/1.1 200 OK\n\n" * 20 + make_pdf(A4))
    assert isinstance(read(path, target)[0], PageImage)


@pytest.mark.parametrize("name", ["a\nb c.pdf", "ü" * 120 + ".pdf", os.fsdecode(b"\xff\xfe.pdf")])
def test_odd_names(make_pdf, target, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(make_pdf(A4))
    assert isinstance(read(path, target)[0], PageImage)


def test_a_named_pipe(make_pdf, target, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[make_pdf(A4)])
    writer.start()
    (page,) = read(path, target)
    writer.join()
    assert black_quarter(page) == "top left"


@pytest.mark.slow
@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_damaged_bytes_give_pages_or_an_input_error(make_pdf, target, data):
    pdf = bytearray(make_pdf(A4, A4))
    place = st.integers(0, len(pdf) - 1)
    for at, byte in data.draw(st.lists(st.tuples(place, st.integers(0, 255)), max_size=12)):
        pdf[at] = byte
    try:
        pages = read(bytes(pdf[: data.draw(place) + 1]), target)
    except InputError as error:
        assert error.hint
        return
    assert [page.number for page in pages] == list(range(1, len(pages) + 1))


def test_the_current_folder_may_change_before_a_restart(make_pdf, target, tmp_path, monkeypatch):
    (tmp_path / "x.pdf").write_bytes(make_pdf(A4, A4))
    monkeypatch.chdir(tmp_path)
    with open_document(Path("x.pdf"), name="x.pdf", **OPTIONS) as document:
        monkeypatch.chdir("/")
        document.close()
        assert [page.number for page in document.pages([1, 2], target)] == [1, 2]


@pytest.mark.parametrize("password", ["sesame", "owner"])
def test_right_password(locked, target, password):
    (page,) = read(locked, target, password=password)
    assert (page.rgb < 128).any()


@pytest.mark.parametrize(
    ("password", "said"), [(None, "no password was given"), ("nope", "does not open it")]
)
def test_no_or_wrong_password(locked, target, password, said):
    with pytest.raises(PasswordError, match=said) as caught:
        read(locked, target, password=password)
    assert "--password-file" in caught.value.hint and "OCRIA_PASSWORD" in caught.value.hint


def test_password_is_not_in_the_process_list(locked):
    with open_document(locked, name="x", password="sesame", max_pixels=10**7):
        task = Path("/proc/self/task") / str(os.getpid()) / "children"
        if not task.exists():
            pytest.skip("no /proc/…/children on this system")
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in task.read_text().split()]
    assert any(b"ocria.rasterize.worker" in line for line in lines)
    assert not any(b"sesame" in line for line in lines)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"Dear Sir or Madam,\n" * 50, "plain text, despite its name"),
        (b"\x00\x01\x02\xff" * 300, "no known format"),
        (b"PK\x03\x04" + bytes(50), "ZIP container"),
        (b"%PDF-1.7\nand nothing else", "damaged, cut short"),
    ],
)
def test_what_is_no_document(target, content, said):
    with pytest.raises(InputError, match=said) as caught:
        read(content, target)
    assert "x.pdf" in str(caught.value)
    assert caught.value.hint


def test_truncated_pdf(make_pdf, target):
    pdf = make_pdf(A4, A4)
    with pytest.raises(InputError, match="cut short") as caught:
        read(pdf[: len(pdf) // 5], target)
    assert "again" in caught.value.hint


def test_zero_pages(make_pdf, target):
    with pytest.raises(InputError, match="no pages"):
        read(make_pdf(), target)


def test_missing_file_and_folder(target, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read(tmp_path / "missing.pdf", target)
    with pytest.raises(InputError, match="is a folder") as caught:
        read(tmp_path, target)
    assert "one document" in caught.value.hint


def test_unreadable_file(make_pdf, target, tmp_path):
    path = tmp_path / "x.pdf"
    path.write_bytes(make_pdf(A4))
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(InputError, match="cannot be read"):
        read(path, target)
