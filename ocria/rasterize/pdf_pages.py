"""PDF pages to RGB pixels with PDFium. Runs in a worker process only: PDFium may crash.

The raw C interface is used because it is the same in every release of pypdfium2, renders
straight into our buffer, and scales both axes independently.
"""

import ctypes
import mmap
from pathlib import Path
from typing import Any

import pypdfium2.raw as pdfium

from ocria.document import Rotation
from ocria.errors import InputError, PageError, PasswordError
from ocria.rasterize.page_faults import fault_of_empty_page
from ocria.rasterize.page_image import NOMINAL_DPI, POINTS_PER_INCH, RenderTarget
from ocria.rasterize.pdf_text import read_text_layer
from ocria.rasterize.pixels import Announce, PageSize, Pixels, check_pixels
from ocria.rasterize.text_layer import TextLayer
from ocria.rasterize.user_unit import UserUnits

_PASSWORD_HINT = "give it with --password-file FILE, or in the variable OCRIA_PASSWORD"
_REPAIR = "repair the PDF or scan it again"
_ALL_OF_THE_PLANE = (-1e6, -1e6, 1e6, 1e6)
_QUARTER_TURNS: tuple[Rotation, ...] = (0, 90, 180, 270)


class PdfPages:
    """The pages of one open PDF.

    Raises:
        PasswordError: encrypted, and the password is missing or wrong.
        InputError: damaged beyond PDFium's repair, without pages, or in an unknown encryption.
    """

    def __init__(self, source: Path | bytes, *, password: str | None, max_pixels: int) -> None:
        self._max_pixels = max_pixels
        # PDFium reads from this memory for as long as the document is open.
        self._memory = _memory(source)
        secret = None if password is None else password.encode("utf-8")
        self._document = pdfium.FPDF_LoadMemDocument64(self._memory, len(self._memory), secret)
        if not self._document:
            raise _open_error(pdfium.FPDF_GetLastError(), password)
        self.num_pages = int(pdfium.FPDF_GetPageCount(self._document))
        if self.num_pages < 1:
            raise InputError(
                "the PDF has no pages", hint="export it again from the program that made it"
            )
        self._forms = self._open_forms()
        self._user_units = UserUnits(self._document, self._memory)

    def render(self, number: int, target: RenderTarget, announce: Announce) -> Pixels:
        """Draws page `number` on white, with its annotations and filled-in form fields.

        Raises:
            PageError: `page_broken` when the page cannot be loaded, or came out empty because it
                is damaged; `pixel_limit` when the size asked for is above the limit.
        """
        page = self._load(number)
        try:
            if self._forms:
                pdfium.FORM_OnAfterLoadPage(page, self._forms)
            size = self._size(page, number)
            announce(size)
            pixels = self._draw(page, size, target)
            if _is_even(pixels.data):
                self._check_empty(page, number)
            return pixels
        finally:
            if self._forms:
                pdfium.FORM_OnBeforeClosePage(page, self._forms)
            pdfium.FPDF_ClosePage(page)

    def text_layer(self, number: int) -> TextLayer:
        """The text of page `number`; empty when the page cannot be loaded or has none."""
        try:
            page = self._load(number)
        except PageError:
            return TextLayer(())
        try:
            return read_text_layer(page)
        finally:
            pdfium.FPDF_ClosePage(page)

    def _load(self, number: int) -> Any:
        page = pdfium.FPDF_LoadPage(self._document, number - 1)
        if not page:
            raise PageError("page_broken", f"the page is damaged: {_REPAIR}")
        if not (pdfium.FPDF_GetPageWidthF(page) and pdfium.FPDF_GetPageHeightF(page)):
            # A CropBox that shows nothing of the page is meant otherwise: show the MediaBox,
            # which PDFium intersects this one with.
            pdfium.FPDFPage_SetCropBox(page, *_ALL_OF_THE_PLANE)
        return page

    def _size(self, page: Any, number: int) -> PageSize:
        unit = self._user_units.of_page(number - 1)
        return PageSize(
            width_pt=float(pdfium.FPDF_GetPageWidthF(page)) * unit,
            height_pt=float(pdfium.FPDF_GetPageHeightF(page)) * unit,
            rotation=_QUARTER_TURNS[pdfium.FPDFPage_GetRotation(page) % 4],
        )

    def _check_empty(self, page: Any, number: int) -> None:
        fault = fault_of_empty_page(self._document, page, number - 1)
        if fault:
            raise PageError("page_broken", f"the page is damaged, {fault}: {_REPAIR}")

    def _draw(self, page: Any, size: PageSize, target: RenderTarget) -> Pixels:
        height_px, width_px = _size_px(size.height_pt, size.width_pt, target)
        check_pixels(height_px, width_px, self._max_pixels, "leave out --dpi, or give a lower one")
        data = bytearray(height_px * width_px * 3)
        self._draw_into(data, page, height_px, width_px)
        return Pixels(height_px=height_px, width_px=width_px, data=data)

    def _draw_into(self, data: bytearray, page: Any, height_px: int, width_px: int) -> None:
        buffer = (ctypes.c_ubyte * len(data)).from_buffer(data)
        bitmap = pdfium.FPDFBitmap_CreateEx(
            width_px, height_px, pdfium.FPDFBitmap_BGR, buffer, width_px * 3
        )
        if not bitmap:
            raise PageError("out_of_memory", f"no memory for {width_px} x {height_px} pixels")
        flags = pdfium.FPDF_ANNOT | pdfium.FPDF_REVERSE_BYTE_ORDER
        area = (0, 0, width_px, height_px, 0, flags)
        try:
            pdfium.FPDFBitmap_FillRect(bitmap, 0, 0, width_px, height_px, 0xFFFFFFFF)
            pdfium.FPDF_RenderPageBitmap(bitmap, page, *area)
            if self._forms:
                # PDFium leaves form fields out of the page, whatever the flags say.
                pdfium.FPDF_FFLDraw(self._forms, bitmap, page, *area)
        finally:
            pdfium.FPDFBitmap_Destroy(bitmap)

    def _open_forms(self) -> Any:
        if pdfium.FPDF_GetFormType(self._document) == pdfium.FORMTYPE_NONE:
            return None
        self._form_info = pdfium.FPDF_FORMFILLINFO(version=1)
        forms = pdfium.FPDFDOC_InitFormFillEnvironment(self._document, self._form_info)
        if forms:
            # The default paints every field blue, as a viewer does.
            pdfium.FPDF_SetFormFieldHighlightAlpha(forms, 0)
        return forms


def _memory(source: Path | bytes) -> Any:
    """The bytes of the document, as a C array; a file is mapped, not read."""
    if isinstance(source, bytes):
        return source
    with source.open("rb") as file:
        # A private map: ctypes only takes writable memory, and the file must stay as it is.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    return (ctypes.c_char * len(mapped)).from_buffer(mapped)


def _size_px(height_pt: float, width_pt: float, target: RenderTarget) -> tuple[int, int]:
    scale = (target.dpi or NOMINAL_DPI) / POINTS_PER_INCH
    size = max(1, round(height_pt * scale)), max(1, round(width_pt * scale))
    return target.fit(*size) if target.dpi is None else size


def _is_even(data: bytes | bytearray) -> bool:
    """Whether all pixels are of one grey: white paper, or the grey of a picture that failed."""
    return data.count(data[0]) == len(data)


def _open_error(code: int, password: str | None) -> InputError:
    if code == pdfium.FPDF_ERR_PASSWORD:
        given = "the password does not open it" if password else "no password was given"
        return PasswordError(f"the PDF is encrypted and {given}", hint=_PASSWORD_HINT)
    if code == pdfium.FPDF_ERR_SECURITY:
        return InputError(
            "the PDF is encrypted in a way that cannot be opened",
            hint="save an unprotected copy with the program that made it",
        )
    return InputError(
        "the PDF cannot be opened: it is damaged, cut short, or has no pages",
        hint="copy or download it again, or repair it with another PDF program",
    )
